import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { request, type Query } from "./client";
import type {
  EvalCase,
  EvalComparison,
  EvalRun,
  EvalRunDetail,
  List,
  LogRecord,
  ServerStatus,
  SessionDetail,
  SessionRow,
  Span,
} from "./types";

/** How often lists ask again, and how often a call that is still going on does, in ms. */
const listRefreshMS = 5_000;
const activeRefreshMS = 2_000;

const id = encodeURIComponent;

export function useServerStatus() {
  return useQuery({
    queryKey: ["status"],
    queryFn: ({ signal }) => request<ServerStatus>("/api/status", { signal }),
    staleTime: Infinity,
  });
}

export function useSessions(query: Query) {
  return useQuery({
    queryKey: ["sessions", query],
    queryFn: ({ signal }) => request<List<SessionRow>>("/api/sessions", { query, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: listRefreshMS,
  });
}

export function useSession(sessionId: string) {
  return useQuery({
    queryKey: ["session", sessionId],
    queryFn: ({ signal }) => request<SessionDetail>(`/api/sessions/${id(sessionId)}`, { signal }),
    refetchInterval: ({ state }) => (state.data?.state === "active" ? activeRefreshMS : false),
  });
}

export function useSpans(sessionId: string, active: boolean) {
  return useQuery({
    queryKey: ["session", sessionId, "spans"],
    queryFn: async ({ signal }) => (await request<{ objects: Span[] }>(`/api/sessions/${id(sessionId)}/spans`, { signal })).objects,
    refetchInterval: active ? listRefreshMS : false,
  });
}

export function useLogs(sessionId: string, active: boolean) {
  return useQuery({
    queryKey: ["session", sessionId, "logs"],
    queryFn: async ({ signal }) => (await request<{ objects: LogRecord[] }>(`/api/sessions/${id(sessionId)}/logs`, { signal })).objects,
    refetchInterval: active ? listRefreshMS : false,
  });
}

export function useEvalRuns(query: Query) {
  return useQuery({
    queryKey: ["evals", query],
    queryFn: ({ signal }) => request<List<EvalRun>>("/api/evals", { query, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: listRefreshMS,
  });
}

export function useEvalRun(runId: string) {
  return useQuery({
    queryKey: ["eval", runId],
    queryFn: ({ signal }) => request<EvalRunDetail>(`/api/evals/${id(runId)}`, { signal }),
    enabled: runId !== "",
    refetchInterval: ({ state }) => (state.data?.status === "running" ? activeRefreshMS : false),
  });
}

export function useEvalCase(runId: string, caseId: string) {
  return useQuery({
    queryKey: ["eval", runId, caseId],
    queryFn: ({ signal }) => request<EvalCase>(`/api/evals/${id(runId)}/cases/${id(caseId)}`, { signal }),
  });
}

export function useEvalComparison(base: string, head: string) {
  return useQuery({
    queryKey: ["eval-comparison", base, head],
    queryFn: ({ signal }) => request<EvalComparison>("/api/evals/compare", { query: { base, head }, signal }),
    enabled: base !== "" && head !== "" && base !== head,
  });
}
