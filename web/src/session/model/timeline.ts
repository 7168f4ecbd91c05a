import type { SessionDetail, Span, Turn } from "../../api/types";
import { SLOW_REPLY_MS } from "../../format/units";
import { parseTime } from "../../format/time";
import { buildEntries, type Entry } from "./entries";
import { brief, epochMS, record, text } from "./loose";

/** All positions are seconds on one axis whose 0 is the start of the call. */
export interface Timeline {
  /** Epoch ms of position 0; null when nothing in the session carries a time. */
  originMS: number | null;
  duration: number;
  /** Position at which the recording starts. */
  audioOffset: number;
  /** Nobody spoke: lines are messages, not stretches of speech. */
  isText: boolean;
  speech: Speech[];
  replies: Reply[];
  tools: ToolSpan[];
  marks: Mark[];
  entries: Entry[];
}

export interface Speech {
  who: "caller" | "agent";
  start: number;
  /** Equal to start for a text message. */
  end: number;
  turn: number | null;
  interrupted: boolean;
  /** The SDK never said when it stopped. */
  open: boolean;
  words: string;
}

export type SegmentKind = "wait" | "hook" | "llm" | "tts" | "rest";

export interface Segment {
  kind: SegmentKind;
  start: number;
  end: number;
  ms: number;
}

/** The wait between the end of the caller's words and the start of the agent's. */
export interface Reply {
  turn: number;
  start: number;
  end: number;
  perceivedMS: number;
  slow: boolean;
  interrupted: boolean;
  segments: Segment[];
  /** The transcription, which runs inside the end-of-turn wait. */
  stt: { start: number; end: number; ms: number } | null;
}

export interface ToolSpan {
  name: string;
  start: number;
  end: number;
  isError: boolean;
  /** No result ever came. */
  open: boolean;
  turn: number | null;
  detail: string;
}

export type MarkKind = "interruption" | "error" | "handoff" | "silence" | "note";

export interface Mark {
  kind: MarkKind;
  at: number;
  label: string;
  turn: number | null;
}

/** Times further than this from the rest are taken for a broken clock and do not stretch the axis. */
const maxSpanMS = 24 * 3600 * 1000;

/** Events that only repeat what the lanes show already. */
const shownElsewhere = new Set([
  "conversation_item_added",
  "function_tools_executed",
  "user_state_changed",
  "agent_state_changed",
  "user_input_transcribed",
  "speech_created",
  "tool_execution_updated",
  "overlapping_speech",
  "metrics_collected",
  "session_usage_updated",
]);

export function buildTimeline(session: SessionDetail, spans: Span[]): Timeline {
  const { turns } = session.session_metrics;
  const entries = buildEntries(session.chat_history, session.session_metrics);
  const audioMS = parseTime(session.audio_started_at);
  const originMS = findOrigin(session, entries, audioMS);
  const timeline: Timeline = {
    originMS,
    duration: 0,
    audioOffset: 0,
    isText: !entries.some((entry) => entry.endMS !== null),
    speech: [],
    replies: [],
    tools: [],
    marks: [],
    entries,
  };
  if (originMS === null) return timeline;

  const at = (ms: number) => (ms - originMS) / 1000;
  const onAxis = (ms: number | null): ms is number => ms !== null && Math.abs(ms - originMS) < maxSpanMS;
  if (audioMS !== null && onAxis(audioMS)) timeline.audioOffset = at(audioMS);
  const createdAt = new Map(entries.map((entry) => [text(entry.raw.id) ?? "", entry.startMS]));

  for (const entry of entries) {
    if (!onAxis(entry.startMS)) continue;
    const start = at(entry.startMS);
    if (entry.kind === "caller" || entry.kind === "agent") {
      const spoken = record(entry.raw.metrics)?.started_speaking_at !== undefined;
      const ended = onAxis(entry.endMS) && entry.endMS >= entry.startMS;
      timeline.speech.push({
        who: entry.kind,
        start,
        end: ended ? at(entry.endMS!) : start + (spoken ? 1 : 0),
        turn: entry.turn,
        interrupted: entry.interrupted,
        open: spoken && !ended,
        words: brief(entry.words, 200),
      });
    } else if (entry.kind === "tool") {
      timeline.tools.push(toolSpan(entry, start, session, at, onAxis));
    } else if (entry.kind === "handoff") {
      timeline.marks.push({ kind: "handoff", at: start, label: `Handoff: ${entry.words}`, turn: entry.turn });
    } else if (entry.kind === "config" || entry.kind === "other") {
      timeline.marks.push({ kind: "note", at: start, label: brief(`${entry.label} ${entry.words}`), turn: entry.turn });
    }
  }
  for (const turn of turns) {
    const reply = buildReply(turn, createdAt.get(turn.turn_id) ?? null, at, onAxis);
    if (reply) timeline.replies.push(reply);
  }
  addInterruptions(timeline);
  addSilences(timeline, session);
  addEvents(timeline, session, at, onAxis);
  timeline.marks.sort((a, b) => a.at - b.at);
  timeline.tools.sort((a, b) => a.start - b.start);
  timeline.speech.sort((a, b) => a.start - b.start);
  timeline.duration = lastPosition(timeline, session, spans);
  return timeline;
}

/** The start of the axis: the start of the call, or of whatever came before it, if that is not absurdly early. */
function findOrigin(session: SessionDetail, entries: Entry[], audioMS: number | null): number | null {
  const known = entries.map((entry) => entry.startMS).filter((ms) => ms !== null);
  known.sort((a, b) => a - b);
  const started = parseTime(session.started_at) ?? audioMS ?? known[Math.floor(known.length / 2)] ?? null;
  if (started === null) return null;
  const candidates = [started, ...known.slice(0, 50)];
  if (audioMS !== null) candidates.push(audioMS);
  return Math.min(...candidates.filter((ms) => Math.abs(ms - started) < maxSpanMS / 24));
}

type ToPosition = (ms: number) => number;
type OnAxis = (ms: number | null) => ms is number;

function toolSpan(entry: Entry, start: number, session: SessionDetail, at: ToPosition, onAxis: OnAxis): ToolSpan {
  const call = entry.tool!;
  const output = session.chat_history.find(
    (item) => item.type === "function_call_output" && item.call_id === call.call_id,
  );
  const outputMS = epochMS(output?.created_at);
  const ended = onAxis(outputMS) && at(outputMS) >= start;
  return {
    name: call.name,
    start,
    end: ended ? at(outputMS) : start,
    isError: call.is_error,
    open: output === undefined,
    turn: entry.turn,
    detail: call.output === null ? "no result" : brief(call.output),
  };
}

function buildReply(turn: Turn, createdMS: number | null, at: ToPosition, onAxis: OnAxis): Reply | null {
  const perceivedMS = turn.user_perceived_ms ?? turn.ttfa_ms;
  if (perceivedMS === undefined) return null;
  const startedMS = parseTime(turn.agent_started_speaking_at) ?? createdMS;
  if (!onAxis(startedMS)) return null;
  const end = at(startedMS);
  const start = end - perceivedMS / 1000;

  const stages: [SegmentKind, number | undefined][] = [
    ["wait", turn.turn_decision_ms],
    ["hook", turn.hook_delay_ms],
    ["llm", turn.llm_ttft_ms],
    ["tts", turn.tts_ttfb_ms],
  ];
  const segments: Segment[] = [];
  let position = start;
  for (const [kind, ms] of stages) {
    if (ms === undefined || ms <= 0) continue;
    const until = Math.min(end, position + ms / 1000);
    segments.push({ kind, start: position, end: until, ms });
    position = until;
  }
  const restMS = Math.round((end - position) * 1000);
  if (restMS > 0) segments.push({ kind: "rest", start: position, end, ms: restMS });
  const stt = turn.stt_delay_ms;
  return {
    turn: turn.turn_number,
    start,
    end,
    perceivedMS,
    slow: perceivedMS > SLOW_REPLY_MS,
    interrupted: turn.interrupted,
    segments,
    stt: stt === undefined ? null : { start, end: Math.min(end, start + stt / 1000), ms: stt },
  };
}

/** An interruption is marked where the caller began to talk over the agent, else where the agent fell silent. */
function addInterruptions(timeline: Timeline) {
  const callerStarts = timeline.speech.filter((speech) => speech.who === "caller").map((speech) => speech.start);
  for (const speech of timeline.speech) {
    if (!speech.interrupted || speech.who !== "agent") continue;
    const over = callerStarts.find((start) => start > speech.start && start <= speech.end);
    timeline.marks.push({
      kind: "interruption",
      at: over ?? speech.end,
      label: speech.turn === null ? "Interrupted" : `Turn ${speech.turn} was interrupted`,
      turn: speech.turn,
    });
  }
}

function addSilences(timeline: Timeline, session: SessionDetail) {
  for (const gap of session.session_metrics.summary.voice?.dead_air.events ?? []) {
    const who = gap.kind === "response" ? "agent" : "caller";
    const next = timeline.speech.find((speech) => speech.turn === gap.turn_number && speech.who === who);
    if (!next) continue;
    timeline.marks.push({
      kind: "silence",
      at: Math.max(0, next.start - gap.gap_ms / 1000),
      label: `${(gap.gap_ms / 1000).toFixed(1)} s of silence before the ${who} spoke`,
      turn: gap.turn_number,
    });
  }
}

function addEvents(timeline: Timeline, session: SessionDetail, at: ToPosition, onAxis: OnAxis) {
  for (const tool of timeline.tools) {
    if (tool.isError) timeline.marks.push({ kind: "error", at: tool.end, label: `${tool.name} failed: ${tool.detail}`, turn: tool.turn });
  }
  for (const event of session.events ?? []) {
    const type = text(event.type) ?? "event";
    const ms = epochMS(event.created_at);
    if (shownElsewhere.has(type) || !onAxis(ms)) continue;
    const failed = type === "error" || (type === "close" && (event.error != null || event.reason === "error"));
    const reason = text(event.reason) ?? (event.error == null ? null : brief(event.error, 120));
    timeline.marks.push({
      kind: failed ? "error" : "note",
      at: at(ms),
      label: reason === null ? type : `${type}: ${reason}`,
      turn: null,
    });
  }
}

function lastPosition(timeline: Timeline, session: SessionDetail, spans: Span[]): number {
  let last = 1;
  for (const speech of timeline.speech) last = Math.max(last, speech.end);
  for (const tool of timeline.tools) last = Math.max(last, tool.end);
  for (const mark of timeline.marks) last = Math.max(last, mark.at);
  const started = parseTime(session.started_at);
  if (started !== null && session.duration_ms !== null && session.duration_ms < maxSpanMS) {
    return Math.max(last, (started - timeline.originMS!) / 1000 + session.duration_ms / 1000);
  }
  // Nobody said how long the call is: it lasts at least as long as its spans.
  for (const span of spans) {
    const end = ((epochMS(span.ended_at) ?? epochMS(span.started_at) ?? 0) - timeline.originMS!) / 1000;
    if (end * 1000 < maxSpanMS) last = Math.max(last, end);
  }
  return last;
}
