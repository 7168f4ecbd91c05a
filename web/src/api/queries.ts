import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { list, record } from "../session/model/loose";
import { allPages, answerOf, api } from "./client";
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
import type { operations } from "./schema";

/** How often lists ask again, and how often a call that is still going on does, in ms. */
const listRefreshMS = 5_000;
const activeRefreshMS = 2_000;
/** The most that the server puts on one page of spans or log lines. */
const telemetryPage = "1000";

export type SessionQuery = NonNullable<operations["list-sessions"]["parameters"]["query"]>;
export type EvalQuery = NonNullable<operations["list-evals"]["parameters"]["query"]>;

export function useServerStatus() {
  return useQuery({
    queryKey: ["status"],
    queryFn: ({ signal }) => answerOf<ServerStatus>(api.GET("/api/status", { signal })),
    staleTime: Infinity,
  });
}

export function useSessions(query: SessionQuery) {
  return useQuery({
    queryKey: ["sessions", query],
    queryFn: ({ signal }) => answerOf<List<SessionRow>>(api.GET("/api/sessions", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: listRefreshMS,
  });
}

export function useSession(id: string) {
  return useQuery({
    queryKey: ["session", id],
    queryFn: async ({ signal }) =>
      withRecords(await answerOf<SessionDetail>(api.GET("/api/sessions/{id}", { params: { path: { id } }, signal }))),
    refetchInterval: ({ state }) => (state.data?.state === "active" ? activeRefreshMS : false),
  });
}

/** Items and events are passed on as the SDK sent them: whatever is no object becomes one that says so. */
function withRecords(session: SessionDetail): SessionDetail {
  const records = (values: unknown) => list(values).map((value) => record(value) ?? { type: "not an object", value });
  return { ...session, chat_history: records(session.chat_history), events: session.events === null ? null : records(session.events) };
}

export function useSpans(id: string, active: boolean) {
  return useQuery({
    queryKey: ["session", id, "spans"],
    queryFn: ({ signal }) =>
      allPages((offset) =>
        answerOf<List<Span>>(
          api.GET("/api/sessions/{id}/spans", { params: { path: { id }, query: { limit: telemetryPage, offset: String(offset) } }, signal }),
        ),
      ),
    refetchInterval: active ? listRefreshMS : false,
  });
}

export function useLogs(id: string, active: boolean) {
  return useQuery({
    queryKey: ["session", id, "logs"],
    queryFn: ({ signal }) =>
      allPages((offset) =>
        answerOf<List<LogRecord>>(
          api.GET("/api/sessions/{id}/logs", { params: { path: { id }, query: { limit: telemetryPage, offset: String(offset) } }, signal }),
        ),
      ),
    refetchInterval: active ? listRefreshMS : false,
  });
}

export function useDeleteSession(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => answerOf(api.DELETE("/api/sessions", { body: { session_ids: [id] } })),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["sessions"] });
      // Its page is still open and must not ask for it again; whoever comes back to it must.
      void queries.invalidateQueries({ queryKey: ["session", id], refetchType: "none" });
    },
  });
}

export function useEvalRuns(query: EvalQuery) {
  return useQuery({
    queryKey: ["evals", query],
    queryFn: ({ signal }) => answerOf<List<EvalRun>>(api.GET("/api/evals", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: listRefreshMS,
  });
}

export function useEvalRun(runId: string) {
  return useQuery({
    queryKey: ["eval", runId],
    queryFn: ({ signal }) => answerOf<EvalRunDetail>(api.GET("/api/evals/{run_id}", { params: { path: { run_id: runId } }, signal })),
    refetchInterval: ({ state }) => (state.data?.status === "running" ? activeRefreshMS : false),
  });
}

export function useEvalCase(runId: string, caseId: string) {
  return useQuery({
    queryKey: ["eval", runId, caseId],
    queryFn: ({ signal }) =>
      answerOf<EvalCase>(
        api.GET("/api/evals/{run_id}/cases/{case_id}", { params: { path: { run_id: runId, case_id: caseId } }, signal }),
      ),
  });
}

export function useEvalComparison(base: string, head: string) {
  return useQuery({
    queryKey: ["eval-comparison", base, head],
    queryFn: ({ signal }) => answerOf<EvalComparison>(api.GET("/api/evals/compare", { params: { query: { base, head } }, signal })),
    enabled: base !== "" && head !== "" && base !== head,
  });
}
