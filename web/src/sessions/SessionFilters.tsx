import { Button, CloseButton, Kbd, Select, TextInput } from "@mantine/core";
import { IconAdjustmentsHorizontal, IconSearch } from "@tabler/icons-react";
import { lazy, Suspense, useEffect, useState, type RefObject } from "react";
import type { SessionRow } from "../api/types";
import { activeFilters, describeFilter, type FilterName } from "./filters";
import classes from "./SessionFilters.module.css";

const MoreFilters = lazy(async () => ({ default: (await import("./MoreFilters")).MoreFilters }));

interface SessionFiltersProps {
  params: URLSearchParams;
  onChange: (changes: Partial<Record<FilterName, string | null>>) => void;
  searchRef: RefObject<HTMLInputElement | null>;
  rows: SessionRow[];
}

/** Typing asks the server once the hands rest for this long, in ms. */
const typingPauseMS = 300;

const outcomes = ["success", "fail"];

export function SessionFilters({ params, onChange, searchRef, rows }: SessionFiltersProps) {
  const [open, setOpen] = useState(false);
  const active = activeFilters(params).filter((name) => name !== "q");
  const outcome = params.get("outcome");
  return (
    <search className={classes.filters}>
      <div className={classes.line}>
        <SearchInput value={params.get("q") ?? ""} onChange={(q) => onChange({ q })} inputRef={searchRef} />
        <Select
          aria-label="State"
          placeholder="Any state"
          data={[
            { value: "active", label: "Active" },
            { value: "ended", label: "Ended" },
          ]}
          value={params.get("state")}
          onChange={(state) => onChange({ state })}
          clearable
          w={130}
        />
        <Select
          aria-label="Outcome"
          placeholder="Any outcome"
          data={outcome && !outcomes.includes(outcome) ? [...outcomes, outcome] : outcomes}
          value={outcome}
          onChange={(chosen) => onChange({ outcome: chosen })}
          clearable
          w={145}
        />
        <Button
          variant="default"
          fw={500}
          leftSection={<IconAdjustmentsHorizontal size={16} stroke={1.6} />}
          aria-expanded={open}
          aria-controls="more-filters"
          onClick={() => setOpen(!open)}
        >
          {open ? "Fewer filters" : "More filters"}
        </Button>
      </div>
      {open && (
        <div id="more-filters">
          <Suspense fallback={null}>
            <MoreFilters params={params} onChange={onChange} rows={rows} />
          </Suspense>
        </div>
      )}
      {active.length > 0 && (
        <ul className={classes.chips} aria-label="Active filters">
          {active.map((name) => (
            <li key={name} className={classes.chip}>
              {describeFilter(name, params.get(name) ?? "")}
              <CloseButton
                size="xs"
                aria-label={`Remove the filter ${describeFilter(name, params.get(name) ?? "")}`}
                onClick={() => onChange({ [name]: null })}
              />
            </li>
          ))}
        </ul>
      )}
    </search>
  );
}

interface SearchInputProps {
  value: string;
  onChange: (words: string) => void;
  inputRef: RefObject<HTMLInputElement | null>;
}

function SearchInput({ value, onChange, inputRef }: SearchInputProps) {
  const [words, setWords] = useState(value);
  const [known, setKnown] = useState(value);
  if (value !== known) {
    // The address changed from outside: back button, a chip, a link.
    setKnown(value);
    setWords(value);
  }
  useEffect(() => {
    if (words === value) return;
    const timer = setTimeout(() => onChange(words.trim()), typingPauseMS);
    return () => clearTimeout(timer);
  }, [words, value, onChange]);
  return (
    <TextInput
      ref={inputRef}
      className={classes.search}
      aria-label="Search the transcripts"
      placeholder="Search what was said"
      leftSection={<IconSearch size={16} stroke={1.6} />}
      rightSection={words === "" ? <Kbd size="xs">/</Kbd> : <CloseButton size="sm" aria-label="Clear the search" onClick={() => setWords("")} />}
      value={words}
      onChange={(event) => setWords(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Escape") event.currentTarget.blur();
      }}
    />
  );
}
