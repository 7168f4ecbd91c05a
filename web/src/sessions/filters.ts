import type { SessionQuery } from "../api/queries";

/** The filters of the sessions list. They live in the address and nowhere else. */
export const filterNames = [
  "q",
  "agent_name",
  "agent_id",
  "account_id",
  "transport",
  "state",
  "outcome",
  "has_recording",
  "started_from",
  "started_to",
  "min_duration_ms",
  "max_duration_ms",
] as const;

export type FilterName = (typeof filterNames)[number];

export const pageSize = "20";

const labels: Record<FilterName, string> = {
  q: "Words",
  agent_name: "Agent",
  agent_id: "Agent id",
  account_id: "Account",
  transport: "Transport",
  state: "State",
  outcome: "Outcome",
  has_recording: "Recording",
  started_from: "From",
  started_to: "To",
  min_duration_ms: "At least",
  max_duration_ms: "At most",
};

export function activeFilters(params: URLSearchParams): FilterName[] {
  return filterNames.filter((name) => (params.get(name) ?? "") !== "");
}

/** The question to the API that an address stands for. */
export function toQuery(params: URLSearchParams): SessionQuery {
  const query: Record<string, string> = { limit: pageSize };
  for (const name of [...activeFilters(params), "offset"]) {
    const value = params.get(name);
    if (value) query[name] = value;
  }
  return query;
}

/** The address after a change of filters: the first page again, nothing left over from empty filters. */
export function withFilters(params: URLSearchParams, changes: Partial<Record<FilterName, string | null>>): URLSearchParams {
  const next = new URLSearchParams(params);
  next.delete("offset");
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  return next;
}

/** A filter in words for its chip. */
export function describeFilter(name: FilterName, value: string): string {
  switch (name) {
    case "min_duration_ms":
    case "max_duration_ms":
      return `${labels[name]} ${Number(value) / 1000} s`;
    case "started_from":
    case "started_to":
      return `${labels[name]} ${describeDay(value)}`;
    case "has_recording":
      return value === "true" ? "With recording" : "Without recording";
    default:
      return `${labels[name]}: ${value}`;
  }
}

function describeDay(value: string): string {
  const date = new Date(value);
  return Number.isNaN(date.getTime())
    ? value
    : date.toLocaleString("en", { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });
}
