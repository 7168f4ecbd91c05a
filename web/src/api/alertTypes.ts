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
