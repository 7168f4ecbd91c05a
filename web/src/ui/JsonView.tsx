import { ScrollArea } from "@mantine/core";
import { useMemo } from "react";
import { CopyText } from "./CopyText";
import classes from "./JsonView.module.css";

/** A JSON value as indented text. */
export function JsonView({ value, label, maxHeight }: { value: unknown; label: string; maxHeight?: number }) {
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? "null", [value]);
  return (
    <div className={classes.box}>
      <div className={classes.copy}>
        <CopyText value={text} label={`Copy ${label}`} />
      </div>
      <ScrollArea.Autosize mah={maxHeight} type="auto" viewportProps={{ tabIndex: 0, "aria-label": label, role: "region" }}>
        <pre className={classes.text}>{text}</pre>
      </ScrollArea.Autosize>
    </div>
  );
}
