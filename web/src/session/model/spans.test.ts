import { describe, expect, it } from "vitest";
import type { SessionDetail, Span } from "../../api/types";
import { withTurnsFromSpans } from "./fromSpans";
import { buildSpanRows } from "./spans";

const start = Date.parse("2026-11-21T05:20:00Z");
const iso = (seconds: number) => new Date(start + seconds * 1000).toISOString();

function span(id: string, parent: string | null, name: string, from: number, to: number | null, attributes = {}): Span {
  return { span_id: id, parent_span_id: parent, name, started_at: iso(from), ended_at: to === null ? null : iso(to), status: null, attributes, events: null } as unknown as Span;
}

describe("the waterfall", () => {
  it("puts children under their parents, by start", () => {
    const rows = buildSpanRows([span("c", "a", "late", 4, 5), span("b", "a", "early", 1, 2), span("a", null, "root", 0, 9)], start, 10);
    expect(rows.map(({ span: { name }, depth }) => [name, depth])).toEqual([["root", 0], ["early", 1], ["late", 1]]);
  });

  it("shows orphans, loops and spans that never ended", () => {
    const rows = buildSpanRows([span("x", "gone", "orphan", 3, null), span("a", "b", "loop a", 0, 1), span("b", "a", "loop b", 1, 2), span("s", "s", "own parent", 5, 6)], start, 10);
    expect(rows.map(({ span: { name } }) => name).toSorted()).toEqual(["loop a", "loop b", "orphan", "own parent"]);
    expect(rows.find(({ span: { name } }) => name === "orphan")).toMatchObject({ open: true, end: 10 });
  });
});

describe("a call without a report", () => {
  const detail = { chat_history: [], session_metrics: { turns: [], tool_calls: [], summary: {} } } as unknown as SessionDetail;
  const spans = [
    span("u", "s", "user_turn", 1, 5.5, { "lk.pii.user_transcript": "hello?", "lk.end_of_turn_delay": 0.5 }),
    span("us", "u", "user_speaking", 1, 5),
    span("a", "s", "agent_turn", 5.5, 9, { "lk.response.text": "Hi.", "lk.e2e_latency": 1.25, "lk.interrupted": true }),
    span("as", "a", "agent_speaking", 6.25, 9),
    span("l", "a", "llm_node", 5.5, 6, { "lk.response.ttft": 0.4 }),
    span("t", "a", "function_tool", 5.6, 5.9, { "lk.function_tool.name": "lookup", "lk.function_tool.is_error": "true" }),
  ];

  it("gets its turns from the spans", () => {
    const told = withTurnsFromSpans(detail, spans);
    expect(told.session_metrics.turns).toMatchObject([{ user_text: "hello?", agent_text: "Hi.", user_perceived_ms: 1250, llm_ttft_ms: 400, turn_decision_ms: 500, interrupted: true }]);
    expect(told.session_metrics.tool_calls).toMatchObject([{ name: "lookup", is_error: true }]);
    expect(told.chat_history.filter((item) => item.type === "message")).toHaveLength(2);
  });

  it("keeps the report's own turns when there is one", () => {
    const reported = { ...detail, chat_history: [{ type: "message" }] } as SessionDetail;
    expect(withTurnsFromSpans(reported, spans)).toBe(reported);
  });
});
