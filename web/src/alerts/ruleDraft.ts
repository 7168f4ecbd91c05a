import type { RuleInput } from "../api/alertQueries";
import type { ApiError } from "../api/client";
import type { AlertRule } from "../api/types";
import { metricInfo } from "./metrics";

/** What the form holds. Rates are percent here, because that is how people say them; the API takes fractions. */
export interface RuleDraft {
  name: string;
  enabled: boolean;
  metric: string;
  threshold: number | string;
  windowMinutes: number | string;
  minSamples: number | string;
  agentId: string;
  accountId: string;
  judgeName: string;
  evalSource: string;
  webhookUrl: string;
  httpMethod: string;
  secret: string;
  removeSecret: boolean;
  headers: [string, string][];
}

export function toDraft(rule: AlertRule | null): RuleDraft {
  const percent = rule !== null && metricInfo(rule.metric).unit === "fraction";
  return {
    name: rule?.name ?? "",
    enabled: rule?.enabled ?? true,
    metric: rule?.metric ?? "latency_perceived_p95",
    threshold: rule === null ? 2000 : percent ? Number((rule.threshold_value * 100).toPrecision(12)) : rule.threshold_value,
    windowMinutes: rule?.window_minutes ?? 60,
    minSamples: rule?.min_samples ?? 1,
    agentId: rule?.agent_id ?? "",
    accountId: rule?.account_id ?? "",
    judgeName: rule?.judge_name ?? "",
    evalSource: rule?.eval_source ?? "all",
    webhookUrl: rule?.webhook_url ?? "",
    httpMethod: rule?.http_method ?? "POST",
    secret: "",
    removeSecret: false,
    headers: Object.entries(rule?.headers ?? {}),
  };
}

/** The rule to send. The server judges it: what is wrong here comes back as an error of the field. */
export function toInput(draft: RuleDraft, rule: AlertRule | null): RuleInput {
  const percent = metricInfo(draft.metric).unit === "fraction";
  const threshold = Number(draft.threshold);
  const headers = Object.fromEntries(draft.headers.filter(([name, value]) => name !== "" || value !== ""));
  const isEval = draft.metric === "eval_fail_rate";
  const input: RuleInput = {
    name: draft.name.trim(),
    enabled: draft.enabled,
    metric: draft.metric,
    threshold_value: percent ? Number((threshold / 100).toPrecision(12)) : threshold,
    window_minutes: Number(draft.windowMinutes),
    min_samples: Number(draft.minSamples),
    agent_id: draft.agentId.trim() || null,
    account_id: draft.accountId.trim() || null,
    judge_name: isEval ? draft.judgeName.trim() || null : null,
    webhook_url: draft.webhookUrl.trim(),
    http_method: draft.httpMethod,
    headers: Object.keys(headers).length > 0 ? headers : null,
  };
  if (isEval) input.eval_source = draft.evalSource;
  else if (rule?.metric === "eval_fail_rate") input.eval_source = "all";
  if (draft.removeSecret) input.secret = null;
  else if (draft.secret !== "") input.secret = draft.secret;
  return input;
}

/** The server's complaints by field; those about a part of a field ("headers.x-team") belong to the field. */
export function fieldErrors(error: ApiError): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { field, message } of error.details) {
    const name = /^[a-z_]+/.exec(field.replace(/^body\./, ""))?.[0] ?? field;
    found[name] = found[name] ? `${found[name]}; ${message}` : message;
  }
  return found;
}
