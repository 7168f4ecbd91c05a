import type { LooseRecord, SessionDetail, Span, ToolCall, Turn } from "../../api/types";
import { epochMS } from "./loose";

/**
 * A call that is still going on, or whose process died, has spans but no report. Its turns are in the spans too: this
 * tells them in the words of a chat history, so that the timeline and the transcript show them in the same way.
 */
export function withTurnsFromSpans(session: SessionDetail, spans: Span[]): SessionDetail {
  if (session.chat_history.length > 0) return session;
  const told = spans.filter((span) => span.name === "user_turn" || span.name === "agent_turn" || span.name === "function_tool");
  if (told.length === 0) return session;
  told.sort((a, b) => (epochMS(a.started_at) ?? 0) - (epochMS(b.started_at) ?? 0));

  const children = new Map<string, Span[]>();
  for (const span of spans) {
    if (span.parent_span_id) children.set(span.parent_span_id, [...(children.get(span.parent_span_id) ?? []), span]);
  }
  const child = (of: Span, name: string) => children.get(of.span_id)?.find((span) => span.name === name);

  const items: LooseRecord[] = [];
  const turns: Turn[] = [];
  const toolCalls: ToolCall[] = [];
  let asked: Span | null = null;
  for (const span of told) {
    if (span.name === "function_tool") {
      const call = toolCall(span, turns.length + 1);
      toolCalls.push(call);
      items.push(
        { id: span.span_id, type: "function_call", call_id: call.call_id, name: call.name, created_at: span.started_at },
        { id: `${span.span_id}-out`, type: "function_call_output", call_id: call.call_id, output: call.output, created_at: span.ended_at },
      );
      continue;
    }
    const isUser = span.name === "user_turn";
    const speaking = child(span, isUser ? "user_speaking" : "agent_speaking");
    items.push({
      id: span.span_id,
      type: "message",
      role: isUser ? "user" : "assistant",
      content: attribute(span, isUser ? "user_transcript" : "response.text") ?? "",
      interrupted: attribute(span, "interrupted") === true,
      transcript_confidence: attribute(span, "transcript_confidence"),
      created_at: speaking?.started_at ?? span.started_at,
      metrics: { started_speaking_at: speaking?.started_at ?? span.started_at, stopped_speaking_at: speaking?.ended_at ?? span.ended_at },
    });
    if (isUser) asked = span;
    else {
      turns.push(turnOf(span, asked, turns.length + 1, speaking, child));
      asked = null;
    }
  }
  return {
    ...session,
    chat_history: items,
    session_metrics: { ...session.session_metrics, turns, tool_calls: toolCalls },
  };
}

function turnOf(span: Span, asked: Span | null, number: number, speaking: Span | undefined, child: (of: Span, name: string) => Span | undefined): Turn {
  const llm = child(span, "llm_node");
  const tts = child(span, "tts_node");
  const turn: Turn = {
    turn_number: number,
    turn_id: span.span_id,
    user_text: asked ? String(attribute(asked, "user_transcript") ?? "") : null,
    agent_text: String(attribute(span, "response.text") ?? ""),
    agent_first: asked === null,
    interrupted: attribute(span, "interrupted") === true,
    tool_calls: [],
    user_perceived_ms: milliseconds(attribute(span, "e2e_latency")),
    llm_ttft_ms: llm && milliseconds(attribute(llm, "response.ttft")),
    tts_ttfb_ms: tts && milliseconds(attribute(tts, "response.ttfb")),
    agent_started_speaking_at: speaking?.started_at ?? undefined,
  };
  if (asked) {
    turn.stt_delay_ms = milliseconds(attribute(asked, "transcription_delay"));
    turn.turn_decision_ms = milliseconds(attribute(asked, "end_of_turn_delay"));
    turn.hook_delay_ms = milliseconds(attribute(asked, "on_user_turn_completed_delay"));
  }
  return turn;
}

function toolCall(span: Span, turn: number): ToolCall {
  const output = attribute(span, "function_tool.output");
  return {
    name: String(attribute(span, "function_tool.name") ?? "tool"),
    call_id: span.span_id,
    arguments: attribute(span, "function_tool.arguments"),
    output: output === undefined ? null : String(output),
    is_error: span.status === "error" || String(attribute(span, "function_tool.is_error")) === "true",
    turn_number: turn,
    timestamp: span.started_at,
  };
}

/** SDK 1.7 put a "pii" segment into the keys of what was said; older ones have none. */
function attribute(span: Span, name: string): unknown {
  return span.attributes[`lk.pii.${name}`] ?? span.attributes[`lk.${name}`];
}

/** The Node SDK 1.7 sends some delays in ms, all others are seconds; no delay of a turn is a minute long. */
function milliseconds(delay: unknown): number | undefined {
  if (typeof delay !== "number" || delay < 0) return undefined;
  return Math.round(delay >= 60 ? delay : delay * 1000);
}
