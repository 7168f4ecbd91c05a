import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answerOf } from "./client";
import type { AlertRule, Firing, RulePreview, TestSendResult, WebhookAttempt, WebhookStats } from "./alertTypes";
import type { List } from "./types";

type Query = Record<string, string | number>;

/** Stands in until /openapi.json describes the alert routes. */
function request<T>(path: string, options: { method?: string; query?: Query; body?: unknown; signal?: AbortSignal } = {}): Promise<T> {
  const query = new URLSearchParams(Object.entries(options.query ?? {}).map(([k, v]) => [k, String(v)])).toString();
  const init = { method: options.method ?? "GET", signal: options.signal, headers: { "content-type": "application/json" }, body: options.body === undefined ? undefined : JSON.stringify(options.body) };
  return answerOf<T>(
    fetch(query ? `${path}?${query}` : path, init).then(async (response) => {
      const json: unknown = await response.json().catch(() => undefined);
      return response.ok ? { data: json, response } : { error: json, response };
    }),
  );
}

const refreshMS = 5_000;
const id = encodeURIComponent;

/** What a rule is made of when it is written: a secret goes in and never comes back. */
export type RuleInput = Partial<
  Pick<
    AlertRule,
    | "name"
    | "enabled"
    | "metric"
    | "threshold_value"
    | "window_minutes"
    | "min_samples"
    | "agent_id"
    | "account_id"
    | "judge_name"
    | "eval_source"
    | "webhook_url"
    | "http_method"
    | "headers"
  >
> & { secret?: string | null };

export function useAlertRules() {
  return useQuery({
    queryKey: ["alert-rules"],
    queryFn: ({ signal }) => request<List<AlertRule>>("/api/alert-rules", { query: { limit: 100 }, signal }),
    refetchInterval: refreshMS,
  });
}

export function useAlertRule(ruleId: string) {
  return useQuery({
    queryKey: ["alert-rule", ruleId],
    queryFn: ({ signal }) => request<AlertRule>(`/api/alert-rules/${id(ruleId)}`, { signal }),
    enabled: ruleId !== "",
    refetchInterval: refreshMS,
  });
}

export function useFirings(ruleId: string, offset: number) {
  return useQuery({
    queryKey: ["firings", ruleId, offset],
    queryFn: ({ signal }) =>
      request<List<Firing>>(`/api/alert-rules/${id(ruleId)}/firings`, { query: { limit: 20, offset }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: refreshMS,
  });
}

export function useWebhookAttempts(query: Query, enabled = true) {
  return useQuery({
    queryKey: ["webhook-attempts", query],
    queryFn: ({ signal }) => request<List<WebhookAttempt>>("/api/alerts/webhook-attempts", { query, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: refreshMS,
    enabled,
  });
}

export function useWebhookStats(range: string) {
  return useQuery({
    queryKey: ["webhook-stats", range],
    queryFn: ({ signal }) => request<WebhookStats>("/api/alerts/webhook-stats", { query: { range }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: refreshMS * 2,
  });
}

/** What a rule would have measured and when it would have fired. Asked again when the rule in the form changes. */
export function useRulePreview(rule: RuleInput | null, from: string) {
  return useQuery({
    queryKey: ["rule-preview", rule, from],
    queryFn: ({ signal }) =>
      request<RulePreview>("/api/alert-rules/preview", { method: "POST", body: { ...rule, from }, signal }),
    enabled: rule !== null,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    retry: false,
  });
}

export function useSaveRule(ruleId: string | null) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (rule: RuleInput) =>
      ruleId === null
        ? request<AlertRule>("/api/alert-rules", { method: "POST", body: rule })
        : request<AlertRule>(`/api/alert-rules/${id(ruleId)}`, { method: "PATCH", body: rule }),
    onSuccess: (rule) => {
      queries.setQueryData(["alert-rule", rule.id], rule);
      void queries.invalidateQueries({ queryKey: ["alert-rules"] });
    },
  });
}

export function useDeleteRule(ruleId: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => request<unknown>(`/api/alert-rules/${id(ruleId)}`, { method: "DELETE" }),
    onSuccess: () => {
      queries.removeQueries({ queryKey: ["alert-rule", ruleId] });
      void queries.invalidateQueries({ queryKey: ["alert-rules"] });
    },
  });
}

export function useTestSend(ruleId: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => request<TestSendResult>(`/api/alert-rules/${id(ruleId)}/test`, { method: "POST" }),
    onSettled: () => void queries.invalidateQueries({ queryKey: ["webhook-attempts"] }),
  });
}

export function useRedeliver() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (firingId: string) => request<unknown>(`/api/alerts/firings/${id(firingId)}/redeliver`, { method: "POST" }),
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["firings"] });
      void queries.invalidateQueries({ queryKey: ["webhook-attempts"] });
    },
  });
}
