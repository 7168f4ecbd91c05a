import { Select, Text, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import { useLogs } from "../../api/queries";
import type { LogRecord, SessionDetail } from "../../api/types";
import { formatUTC } from "../../format/time";
import { formatCount, MISSING, plural } from "../../format/units";
import { CutShort } from "../../ui/CutShort";
import { ErrorBox } from "../../ui/ErrorBox";
import { TableSkeleton } from "../../ui/TableSkeleton";
import classes from "./Tabs.module.css";

/** OpenTelemetry's severity numbers: 13 and up warns, 17 and up is an error. */
const warnFrom = 13;
const errorFrom = 17;
const levels = [
  { value: "0", label: "All levels" },
  { value: "9", label: "Info and above" },
  { value: String(warnFrom), label: "Warnings and errors" },
  { value: String(errorFrom), label: "Errors" },
];
const shownAtOnce = 500;

export function LogsTab({ session }: { session: SessionDetail }) {
  const logs = useLogs(session.id, session.state === "active");
  const [level, setLevel] = useState("0");
  const [words, setWords] = useState("");
  const [limit, setLimit] = useState(shownAtOnce);
  const matching = useMemo(() => {
    const wanted = words.toLowerCase();
    return (logs.data?.rows ?? []).filter(
      (line) => line.severity_number >= Number(level) && (line.body ?? "").toLowerCase().includes(wanted),
    );
  }, [logs.data, level, words]);

  if (logs.isError) return <ErrorBox title="The logs could not be read" error={logs.error} onRetry={() => void logs.refetch()} />;
  if (!logs.data) return <TableSkeleton rows={6} />;
  if (logs.data.rows.length === 0) {
    return (
      <Text c="dimmed" size="sm">
        The agent sent no log lines for this session. LiveKit agents send them with record=True (or logs=True).
      </Text>
    );
  }
  return (
    <>
      <div className={classes.filters}>
        <Select size="xs" label="Level" data={levels} value={level} onChange={(value) => setLevel(value ?? "0")} allowDeselect={false} />
        <TextInput size="xs" label="Contains" value={words} onChange={(event) => setWords(event.currentTarget.value)} />
        <Text size="sm" c="dimmed" className="num">
          {formatCount(matching.length)} of {plural(logs.data.rows.length, "line")}
        </Text>
      </div>
      <CutShort list={logs.data} of="lines" />
      <div className={`panel ${classes.logs}`}>
        {matching.slice(0, limit).map((line, index) => (
          <LogLine key={index} line={line} />
        ))}
      </div>
      {matching.length > limit && (
        <button type="button" className={classes.more} onClick={() => setLimit(limit + shownAtOnce)}>
          Show {formatCount(Math.min(shownAtOnce, matching.length - limit))} more
        </button>
      )}
    </>
  );
}

function LogLine({ line }: { line: LogRecord }) {
  const tone = line.severity_number >= errorFrom ? "bad" : line.severity_number >= warnFrom ? "warn" : undefined;
  const hasAttributes = line.attributes !== null && Object.keys(line.attributes ?? {}).length > 0;
  return (
    <div className={classes.logLine} data-tone={tone}>
      <time dateTime={line.time ?? undefined} title={formatUTC(line.time)} className={classes.logTime}>
        {clock(line.time)}
      </time>
      <span>{line.severity ?? MISSING}</span>
      <div className={classes.logBody}>
        {line.body}
        {hasAttributes && (
          <details className={classes.logMore}>
            <summary>{line.logger ?? "attributes"}</summary>
            {JSON.stringify(line.attributes, null, 2)}
          </details>
        )}
      </div>
    </div>
  );
}

function clock(iso: string | null): string {
  if (iso === null) return MISSING;
  const date = new Date(iso);
  return `${date.toLocaleTimeString("en", { hourCycle: "h23" })}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
