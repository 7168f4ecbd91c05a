import { Anchor } from "@mantine/core";
import { IconExternalLink } from "@tabler/icons-react";
import type { LooseRecord } from "../api/types";
import { MISSING } from "../format/units";
import { describeCI } from "./ci";

export function CILink({ ci }: { ci: LooseRecord | null }) {
  const run = describeCI(ci);
  if (!run) return <>{MISSING}</>;
  if (!run.url) return <span className="mono">{run.label}</span>;
  return (
    <Anchor href={run.url} target="_blank" rel="noreferrer" size="sm" className="mono">
      {run.label} <IconExternalLink size={12} stroke={1.8} aria-label="(opens the CI run)" role="img" />
    </Anchor>
  );
}
