import "@mantine/dates/styles.css";
import { Autocomplete, NumberInput, Select } from "@mantine/core";
import { DateTimePicker } from "@mantine/dates";
import dayjs from "dayjs";
import { useEffect, useState } from "react";
import type { SessionRow } from "../api/types";
import type { FilterName } from "./filters";
import classes from "./SessionFilters.module.css";

interface MoreFiltersProps {
  params: URLSearchParams;
  onChange: (changes: Partial<Record<FilterName, string | null>>) => void;
  rows: SessionRow[];
}

const texts: [FilterName, string, (row: SessionRow) => string | null][] = [
  ["agent_name", "Agent", (row) => row.agent_name],
  ["account_id", "Account", (row) => row.account_id],
  ["transport", "Transport", (row) => row.transport],
];

/** The rarer filters. Suggestions come from the rows on the screen; any other value can be typed. */
export function MoreFilters({ params, onChange, rows }: MoreFiltersProps) {
  return (
    <div className={`panel ${classes.more}`}>
      {texts.map(([name, label, pick]) => (
        <TextFilter
          key={name}
          label={label}
          value={params.get(name) ?? ""}
          suggestions={[...new Set(rows.map(pick).filter((value) => value !== null))]}
          onCommit={(value) => onChange({ [name]: value })}
        />
      ))}
      <Select
        label="Recording"
        placeholder="With or without"
        data={[
          { value: "true", label: "With recording" },
          { value: "false", label: "Without recording" },
        ]}
        value={params.get("has_recording")}
        onChange={(value) => onChange({ has_recording: value })}
        clearable
      />
      <TimeFilter label="Started from" value={params.get("started_from")} onCommit={(value) => onChange({ started_from: value })} />
      <TimeFilter label="Started to" value={params.get("started_to")} onCommit={(value) => onChange({ started_to: value })} />
      <SecondsFilter label="At least (s)" value={params.get("min_duration_ms")} onCommit={(value) => onChange({ min_duration_ms: value })} />
      <SecondsFilter label="At most (s)" value={params.get("max_duration_ms")} onCommit={(value) => onChange({ max_duration_ms: value })} />
    </div>
  );
}

function TextFilter(props: { label: string; value: string; suggestions: string[]; onCommit: (value: string) => void }) {
  const { label, value, suggestions, onCommit } = props;
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const commit = (wanted: string) => {
    if (wanted.trim() !== value) onCommit(wanted.trim());
  };
  return (
    <Autocomplete
      label={label}
      placeholder="Any"
      data={suggestions}
      value={typed}
      onChange={setTyped}
      onOptionSubmit={commit}
      onBlur={() => commit(typed)}
      onKeyDown={(event) => {
        if (event.key === "Enter") commit(typed);
      }}
    />
  );
}

/** A moment in local time; the address carries it in UTC. */
function TimeFilter(props: { label: string; value: string | null; onCommit: (value: string | null) => void }) {
  const { label, value, onCommit } = props;
  return (
    <DateTimePicker
      label={label}
      placeholder="Any time"
      valueFormat="YYYY-MM-DD HH:mm"
      value={value ? dayjs(value).format("YYYY-MM-DD HH:mm:ss") : null}
      onChange={(local) => onCommit(local ? dayjs(local).toISOString() : null)}
      clearable
    />
  );
}

function SecondsFilter(props: { label: string; value: string | null; onCommit: (value: string | null) => void }) {
  const { label, value, onCommit } = props;
  const [typed, setTyped] = useState<string | number>(value ? Number(value) / 1000 : "");
  useEffect(() => setTyped(value ? Number(value) / 1000 : ""), [value]);
  const commit = () => {
    const wanted = typeof typed === "number" ? String(Math.round(typed * 1000)) : null;
    if (wanted !== value) onCommit(wanted);
  };
  return (
    <NumberInput
      label={label}
      placeholder="Any"
      min={0}
      allowNegative={false}
      value={typed}
      onChange={setTyped}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === "Enter") commit();
      }}
    />
  );
}
