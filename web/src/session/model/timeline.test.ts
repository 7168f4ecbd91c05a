import { describe, expect, it } from "vitest";
import type { LooseRecord, SessionDetail, Span, Turn } from "../../api/types";
import { buildTimeline } from "./timeline";

const start = Date.parse("2026-11-21T05:20:00Z");
const iso = (seconds: number) => new Date(start + seconds * 1000).toISOString();

function turn(fields: Partial<Turn> & { turn_number: number; turn_id: string }): Turn {
  return { user_text: null, agent_text: "yes", agent_first: false, interrupted: false, tool_calls: [], ...fields };
}

function session(items: LooseRecord[], turns: Turn[] = [], more: Partial<SessionDetail> = {}): SessionDetail {
  return {
    id: "s",
    state: "ended",
    started_at: iso(0),
    duration_ms: 30_000,
    chat_history: items,
    events: null,
    session_metrics: { turns, tool_calls: [], summary: { voice: undefined } },
    ...more,
  } as unknown as SessionDetail;
}

function said(id: string, role: string, from: number, to: number, more: LooseRecord = {}): LooseRecord {
  return {
    id,
    type: "message",
    role,
    content: [id],
    created_at: start / 1000 + from,
    metrics: { started_speaking_at: start / 1000 + from, stopped_speaking_at: start / 1000 + to },
    ...more,
  };
}

describe("the timeline", () => {
  it("lays the stages of a reply behind each other and leaves the rest unexplained", () => {
    const reply = turn({
      turn_number: 1,
      turn_id: "a",
      user_perceived_ms: 3000,
      turn_decision_ms: 500,
      stt_delay_ms: 200,
      hook_delay_ms: 100,
      llm_ttft_ms: 900,
      tts_ttfb_ms: 200,
      agent_started_speaking_at: iso(13),
    });
    const { replies } = buildTimeline(session([said("u", "user", 5, 10), said("a", "assistant", 13, 15)], [reply]), []);
    expect(replies).toHaveLength(1);
    expect(replies[0]!.start).toBeCloseTo(10);
    expect(replies[0]!.slow).toBe(true);
    expect(replies[0]!.segments.map(({ kind, ms }) => [kind, ms])).toEqual([
      ["wait", 500],
      ["hook", 100],
      ["llm", 900],
      ["tts", 200],
      ["rest", 1300],
    ]);
    expect(replies[0]!.stt!.end).toBeCloseTo(10.2);
  });

  it("never draws more stages than there was waiting", () => {
    const early = turn({ turn_number: 1, turn_id: "a", user_perceived_ms: 600, turn_decision_ms: 500, llm_ttft_ms: 900, agent_started_speaking_at: iso(3) });
    const { replies } = buildTimeline(session([said("a", "assistant", 3, 4)], [early]), []);
    expect(replies[0]!.segments.at(-1)!.end).toBeCloseTo(3);
    expect(replies[0]!.segments.some(({ kind }) => kind === "rest")).toBe(false);
  });

  it("marks an interruption where the caller began to talk", () => {
    const items = [said("a", "assistant", 2, 8, { interrupted: true }), said("u", "user", 6.5, 9)];
    const { marks } = buildTimeline(session(items, [turn({ turn_number: 1, turn_id: "a", interrupted: true })]), []);
    expect(marks).toMatchObject([{ kind: "interruption", at: 6.5, turn: 1 }]);
  });

  it("keeps a broken clock from stretching the axis", () => {
    const items = [said("u", "user", 1, 2), said("old", "user", -1e9, -1e9 + 1), said("new", "user", 1e9, 1e9 + 1)];
    const { duration, speech } = buildTimeline(session(items, [], { duration_ms: null }), []);
    expect(speech).toHaveLength(1);
    expect(duration).toBeLessThan(10);
  });

  it("reads epoch seconds, milliseconds and RFC 3339 alike", () => {
    const at = start / 1000 + 4;
    const spell = (value: unknown) => ({ id: String(value), type: "message", role: "user", content: "hi", created_at: value, metrics: { started_speaking_at: value, stopped_speaking_at: value } });
    const { speech } = buildTimeline(session([spell(at), spell(at * 1000), spell(iso(4))]), []);
    expect(speech.map((each) => each.start)).toEqual([4, 4, 4]);
  });

  it("has no axis without any time, and still a transcript", () => {
    const bare = { id: "m", type: "message", role: "user", content: ["hello"] };
    const built = buildTimeline(session([bare], [], { started_at: null, duration_ms: null }), []);
    expect(built.originMS).toBeNull();
    expect(built.entries.map((entry) => entry.words)).toEqual(["hello"]);
  });

  it("lasts as long as its spans while nobody says how long the call is", () => {
    const span = { span_id: "1", name: "agent_turn", started_at: iso(5), ended_at: iso(42) } as unknown as Span;
    expect(buildTimeline(session([], [], { duration_ms: null, state: "active" }), [span]).duration).toBe(42);
  });
});

describe("the order of the transcript", () => {
  it("is the order of time; a tool call stays before the reply it led to", () => {
    const items = [
      said("late", "assistant", 20, 22),
      said("first", "user", 1, 2),
      { id: "c", type: "function_call", call_id: "k", name: "lookup", arguments: "{}", created_at: start / 1000 + 20.5 },
      { id: "o", type: "function_call_output", call_id: "k", output: "ok", created_at: start / 1000 + 21 },
    ];
    const detail = session(items, [turn({ turn_number: 1, turn_id: "late" })]);
    detail.session_metrics.tool_calls = [
      { name: "lookup", call_id: "k", arguments: {}, output: "ok", is_error: false, turn_number: 1, timestamp: iso(20.5) },
    ];
    const { entries } = buildTimeline(detail, []);
    expect(entries.map((entry) => entry.words)).toEqual(["first", "lookup", "late"]);
    expect(entries[0]!.turn).toBe(1);
  });

  it("shows an item of an unknown type and an output without its call", () => {
    const { entries } = buildTimeline(session([{ type: "hologram" }, { type: "function_call_output", call_id: "x", output: "lost" }, {}]), []);
    expect(entries.map((entry) => entry.label)).toEqual(["hologram", "result of a tool", "item without a type"]);
    expect(entries[1]!.words).toBe("lost");
  });
});
