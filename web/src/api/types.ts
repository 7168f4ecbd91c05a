/** Names for the shapes of the API. They come from the server's own description, /openapi.json, by `npm run gen-api`. */

import type { components } from "./schema";

type Schemas = components["schemas"];

/**
 * The description allows null for every list, but the server always answers a list. What it passes on as the SDK sent
 * it stays `unknown`.
 */
type Lists<T> = { [K in keyof T]: NonNullable<T[K]> extends (infer U)[] ? Lists<U>[] : T[K] extends object ? Lists<T[K]> : T[K] };

/** One item of a chat history, one event: any key may be missing or of another type. */
export type LooseRecord = Record<string, unknown>;

export type ListMeta = Schemas["ListMeta"];

export interface List<T> {
  meta: ListMeta;
  objects: T[];
}

export type SessionRow = Schemas["SessionRow"];
export type Turn = Lists<Schemas["Turn"]>;
export type ToolCall = Schemas["ToolCall"];
export type SessionMetrics = Lists<Schemas["Metrics"]>;
export type Outcome = Schemas["OutcomeView"];

export interface SessionDetail
  extends Omit<SessionRow, "outcome" | "incomplete">,
    Omit<Lists<Schemas["SessionDetail"]>, "outcome" | "chat_history" | "events" | "options" | "usage" | keyof SessionRow> {
  outcome: Outcome | null;
  incomplete: string[];
  chat_history: LooseRecord[];
  events: LooseRecord[] | null;
  options: LooseRecord | null;
  usage: LooseRecord[];
}

export interface Span extends Omit<Schemas["SpanView"], "attributes" | "events"> {
  attributes: LooseRecord;
  events: LooseRecord[] | null;
}

export interface LogRecord extends Omit<Schemas["LogView"], "attributes"> {
  attributes: LooseRecord;
}

export interface EvalRun extends Omit<Schemas["EvalRunRow"], "ci"> {
  ci: LooseRecord | null;
}

export interface EvalCase extends Omit<Schemas["EvalCaseView"], "events" | "judgments" | "failure"> {
  /** Left out in the list of a run. */
  events?: LooseRecord[];
  judgments: LooseRecord[];
  failure: LooseRecord | null;
}

export interface EvalRunDetail extends EvalRun {
  cases: EvalCase[];
}

export type EvalComparison = Lists<Schemas["ComparisonOutputBody"]>;
export type ComparedCase = Schemas["ComparedCase"];
export type Change = Schemas["Change"];
export type ServerStatus = Schemas["StatusOutputBody"];

export type AlertRule = Schemas["RuleView"];
export type Firing = Lists<Schemas["FiringView"]>;
export type WebhookAttempt = Schemas["AttemptView"];
export type TestSendResult = Schemas["TestOutputBody"];
export type RuleFields = Schemas["RuleFields"];

export interface PreviewPoint {
  at: string;
  /** Of the window that ends here; null when nothing was observed. */
  value: number | null;
  samples: number;
  reason: string | null;
}

export interface RulePreview {
  from: string;
  to: string;
  step_seconds: number;
  points: PreviewPoint[];
  fired_at: string[];
}

export interface WebhookStats {
  range: string;
  total_attempts: number;
  accepted: number;
  acceptance_rate: number | null;
  avg_duration_ms: number | null;
  buckets: { bucket_start: string; attempts: number; accepted: number }[];
  rule_breakdown: { rule_id: string; rule_name: string; attempts: number; accepted: number }[];
}
