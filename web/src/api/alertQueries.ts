import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answerOf, api } from "./client";
import type { operations } from "./schema";
import type { AlertRule, Firing, List, RuleFields, RulePreview, TestSendResult, WebhookAttempt, WebhookStats } from "./types";

const refreshMS = 5_000;

/**
 * What a rule is made of when it is written. An absent field keeps its value or takes its default, null clears it.
 * Choices are plain strings here: the server judges them.
 */
export type RuleInput = { [K in keyof Omit<RuleFields, "headers">]?: RuleFields[K] extends string ? string : RuleFields[K] } & {
  headers?: Record<string, string> | null;
};

export type AttemptQuery = NonNullable<operations["list-webhook-attempts"]["parameters"]["query"]>;

/** The description names every field as required; the server also takes a part of them. */
function asBody(rule: object): RuleFields {
  return rule as RuleFields;
}

export function useAlertRules() {
  return useQuery({
    queryKey: ["alert-rules"],
    queryFn: ({ signal }) => answerOf<List<AlertRule>>(api.GET("/api/alert-rules", { params: { query: { limit: "100" } }, signal })),
    refetchInterval: refreshMS,
  });
}

export function useAlertRule(id: string) {
  return useQuery({
    queryKey: ["alert-rule", id],
    queryFn: ({ signal }) => answerOf<AlertRule>(api.GET("/api/alert-rules/{id}", { params: { path: { id } }, signal })),
    enabled: id !== "",
    refetchInterval: refreshMS,
  });
}

export function useFirings(id: string, offset: number) {
  return useQuery({
    queryKey: ["firings", id, offset],
    queryFn: ({ signal }) =>
      answerOf<List<Firing>>(
        api.GET("/api/alert-rules/{id}/firings", { params: { path: { id }, query: { limit: "20", offset: String(offset) } }, signal }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: refreshMS,
  });
}

export function useWebhookAttempts(query: AttemptQuery) {
  return useQuery({
    queryKey: ["webhook-attempts", query],
    queryFn: ({ signal }) => answerOf<List<WebhookAttempt>>(api.GET("/api/alerts/webhook-attempts", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: refreshMS,
  });
}

export function useWebhookStats(range: string) {
  return useQuery({
    queryKey: ["webhook-stats", range],
    queryFn: ({ signal }) => answerOf<WebhookStats>(api.GET("/api/alerts/webhook-stats", { params: { query: { range } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: refreshMS * 2,
  });
}

/** What a rule would have measured and when it would have fired. Asked again when the rule in the form changes. */
export function useRulePreview(rule: RuleInput | null, from: string) {
  return useQuery({
    queryKey: ["rule-preview", rule, from],
    queryFn: ({ signal }) => answerOf<RulePreview>(api.POST("/api/alert-rules/preview", { body: asBody({ ...rule, from }), signal })),
    enabled: rule !== null,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    retry: false,
  });
}

/** Creates a rule, or changes the one with this id. */
export function useSaveRule(id: string | null) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (rule: RuleInput) =>
      answerOf<AlertRule>(
        id === null
          ? api.POST("/api/alert-rules", { body: asBody(rule) })
          : api.PATCH("/api/alert-rules/{id}", { params: { path: { id } }, body: asBody(rule) }),
      ),
    onSuccess: (rule) => {
      queries.setQueryData(["alert-rule", rule.id], rule);
      void queries.invalidateQueries({ queryKey: ["alert-rules"] });
    },
  });
}

export function useDeleteRule(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => answerOf(api.DELETE("/api/alert-rules/{id}", { params: { path: { id } } })),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["alert-rules"] });
    },
  });
}

export function useTestSend(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => answerOf<TestSendResult>(api.POST("/api/alert-rules/{id}/test", { params: { path: { id } } })),
    onSettled: () => void queries.invalidateQueries({ queryKey: ["webhook-attempts"] }),
  });
}

export function useRedeliver() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => answerOf(api.POST("/api/alerts/firings/{id}/redeliver", { params: { path: { id } } })),
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["firings"] });
      void queries.invalidateQueries({ queryKey: ["webhook-attempts"] });
    },
  });
}
