/** Names for the shapes of the API, so that pages do not spell out paths into the generated schema. */

export interface ListMeta {
  limit: number;
  offset: number;
  total_count: number;
  next: string | null;
  previous: string | null;
}
export interface List<T> {
  meta: ListMeta;
  objects: T[];
}

export interface SessionRow {
  id: string;
  session_id: string;
  job_id: string | null;
  account_id: string | null;
  agent_id: string | null;
  agent_name: string | null;
  transport: string | null;
  state: string;
  started_at: string | null;
  ended_at: string | null;
  duration_ms: number | null;
  turn_count: number;
  interruption_count: number;
  tool_call_count: number;
  p95_user_perceived_ms: number | null;
  has_stt: boolean;
  has_llm: boolean;
  has_tts: boolean;
  outcome: string | null;
  eval_pass_count: number;
  eval_fail_count: number;
  record_url: string | null;
  estimated_cost_usd: number | null;
  created_at: string;
  match_snippet?: string | null;
}

export interface Distribution {
  avg: number;
  p50: number;
  p90: number;
  p95: number;
  count: number;
}

export interface ToolCall {
  name: string;
  call_id: string;
  arguments: unknown;
  output: string | null;
  is_error: boolean;
  turn_number: number;
  timestamp: string | null;
}

export interface Turn {
  turn_number: number;
  turn_id: string;
  user_text: string | null;
  agent_text: string | null;
  agent_first: boolean;
  interrupted: boolean;
  user_started_speaking_at?: string | null;
  user_stopped_speaking_at?: string | null;
  agent_started_speaking_at?: string | null;
  agent_stopped_speaking_at?: string | null;
  user_perceived_ms?: number;
  stt_delay_ms?: number;
  llm_ttft_ms?: number;
  tts_ttfb_ms?: number;
  turn_decision_ms?: number;
  hook_delay_ms?: number;
  user_speech_ms?: number;
  agent_speech_ms?: number;
  ttfa_ms?: number;
  inter_turn_gap_ms?: number;
  user_transcript_confidence?: number;
  llm_prompt_tokens?: number;
  llm_completion_tokens?: number;
  llm_total_tokens?: number;
  tts_characters?: number;
  tool_calls: ToolCall[];
  stt_provider?: string;
  stt_model?: string;
  llm_provider?: string;
  llm_model?: string;
  tts_provider?: string;
  tts_model?: string;
}

export interface DeadAirEvent {
  turn_number: number;
  kind: string;
  gap_ms: number;
}

export interface Voice {
  ttfa?: Distribution;
  greeting_ttfa_ms?: number;
  user_speech_ms: number;
  agent_speech_ms: number;
  talk_ratio?: number;
  longest_monologue_ms?: number;
  longest_monologue_turn?: number;
  user_wpm?: number;
  agent_wpm?: number;
  dead_air: { threshold_ms: number; count: number; total_ms: number; max_ms: number; events: DeadAirEvent[] };
  silence_pct?: number;
}

export interface MetricsSummary {
  total_turns: number;
  total_llm_tokens: number;
  total_llm_prompt_tokens: number;
  total_llm_completion_tokens: number;
  total_tts_characters: number;
  total_tool_calls: number;
  interruptions: number;
  interruption_rate?: number;
  avg_user_perceived_ms?: number;
  p95_user_perceived_ms?: number;
  latency: Record<string, Distribution>;
  voice?: Voice;
  providers: { stt: string[]; llm: string[]; tts: string[] };
}

export interface SessionMetrics {
  turns: Turn[];
  tool_calls: ToolCall[];
  summary: MetricsSummary;
}

export interface Evaluation {
  source: string;
  judge_name: string;
  tag: string | null;
  verdict: string;
  reasoning: string | null;
  instructions: string | null;
  observed_at: string | null;
  raw: unknown;
  created_at: string;
}

export interface Outcome {
  source: string;
  outcome: string;
  reason: string | null;
  observed_at: string | null;
  raw: unknown;
  created_at: string;
}

export interface Tag {
  name: string;
  metadata: unknown;
  source: string;
  observed_at: string | null;
  created_at: string;
}

/** One item of a chat history or one event, as the SDK sent it: any key may be missing or of another type. */
export type LooseRecord = Record<string, unknown>;

export interface SessionDetail extends Omit<SessionRow, "outcome"> {
  chat_history: LooseRecord[];
  session_metrics: SessionMetrics;
  raw_report: unknown;
  events: LooseRecord[] | null;
  options: LooseRecord | null;
  tags: Tag[];
  evaluations: Evaluation[];
  outcome: Outcome | null;
  usage: LooseRecord[];
  sdk_version: string | null;
  room_name: string | null;
  audio_started_at?: string | null;
}

export interface Span {
  trace_id: string;
  span_id: string;
  parent_span_id: string | null;
  name: string;
  started_at: string;
  ended_at: string | null;
  status_code: string | null;
  status_message: string | null;
  attributes: LooseRecord;
  events: LooseRecord[] | null;
}

export interface LogRecord {
  time: string;
  severity_number: number;
  severity_text: string;
  body: string;
  logger: string;
  attributes: LooseRecord;
}

export interface EvalRun {
  run_id: string;
  name: string | null;
  account_id: string | null;
  agent_id: string | null;
  agent_name: string | null;
  framework: string | null;
  framework_version: string | null;
  testing_framework: string;
  testing_framework_version: string | null;
  started_at: string;
  finished_at: string | null;
  duration_ms: number | null;
  total: number;
  passed: number;
  failed: number;
  errored: number;
  skipped: number;
  pass_rate: number | null;
  ci: LooseRecord | null;
  status: string;
  created_at: string;
  ttft_p50_ms: number | null;
  ttft_p95_ms: number | null;
  turn_count: number;
  tool_call_count: number;
  total_tokens: number | null;
  estimated_cost_usd: number | null;
}

export interface EvalRunDetail extends EvalRun {
  cases: EvalCase[];
}

export interface EvalCase {
  case_id: string;
  name: string;
  file: string | null;
  status: string;
  started_at: string | null;
  finished_at: string | null;
  duration_ms: number | null;
  user_input: string | null;
  events: LooseRecord[];
  judgments: LooseRecord[];
  failure: LooseRecord | null;
  judge_failed: boolean;
  ttft_p50_ms?: number | null;
  ttft_p95_ms?: number | null;
  total_tokens?: number | null;
}

export interface AlertRule {
  id: string;
  name: string;
  enabled: boolean;
  metric: string;
  threshold_value: number;
  window_minutes: number;
  min_samples: number;
  agent_id: string | null;
  account_id: string | null;
  judge_name: string | null;
  eval_source?: string;
  webhook_url: string;
  http_method: string;
  headers: Record<string, string> | null;
  has_secret: boolean;
  last_fired_at: string | null;
  suppressed_until: string | null;
  last_value: number | null;
  last_samples: number | null;
  last_reason: string | null;
  evaluated_at: string | null;
  created_at: string;
  updated_at: string;
}

export interface Firing {
  id: string;
  rule_id: string;
  window_start: string;
  window_end: string;
  matched_count: number;
  total_count: number | null;
  observed_value: number;
  sample_session_ids: string[];
  status: string;
  attempt_count: number;
  next_attempt_at: string | null;
  last_attempt_at: string | null;
  response_status: number | null;
  last_error: string | null;
  created_at: string;
}

export interface WebhookAttempt {
  id: string;
  rule_id: string;
  rule_name: string;
  firing_id: string | null;
  kind: string;
  url: string;
  http_method: string;
  attempt_number: number;
  ok: boolean;
  response_status: number | null;
  error: string | null;
  duration_ms: number;
  created_at: string;
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

export interface TestSendResult {
  ok: boolean;
  response_status: number | null;
  error: string | null;
  duration_ms: number;
}

export interface ServerStatus {
  auth: { basic: boolean; livekit: boolean };
  version: string;
}

export interface ComparedCase {
  file: string | null;
  name: string;
  base_case_id: string | null;
  head_case_id: string | null;
  base_status: string | null;
  head_status: string | null;
}

export interface Change {
  base: number | null;
  head: number | null;
  change: number | null;
}

export interface EvalComparison {
  newly_failing: ComparedCase[];
  newly_passing: ComparedCase[];
  still_failing: ComparedCase[];
  added: ComparedCase[];
  removed: ComparedCase[];
  unchanged: number;
  pass_rate: Change;
  ttft_p50_ms: Change;
  ttft_p95_ms: Change;
  ttft_avg_ms: Change;
}

export interface PreviewPoint {
  at: string;
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
