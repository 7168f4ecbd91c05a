import type { LooseRecord, SessionMetrics, ToolCall } from "../../api/types";
import { contentText, epochMS, record, text, withoutMarkup } from "./loose";

/** One line of the transcript. Times are epoch ms, null when the SDK sent none. */
export interface Entry {
  key: string;
  kind: "caller" | "agent" | "system" | "tool" | "handoff" | "config" | "other";
  /** When it began: start of speech, else creation. */
  startMS: number | null;
  endMS: number | null;
  /** The turn it belongs to, 1 for the first; null before the first and for what belongs to none. */
  turn: number | null;
  words: string;
  interrupted: boolean;
  confidence: number | null;
  tool: ToolCall | null;
  /** The type of an item this dashboard does not know, or a short heading. */
  label: string;
  raw: LooseRecord;
}

/** Turns a chat history into transcript lines in the order in which things happened. */
export function buildEntries(items: LooseRecord[], metrics: SessionMetrics): Entry[] {
  const turnOfMessage = new Map(metrics.turns.map((turn) => [turn.turn_id, turn.turn_number]));
  const calls = new Map(metrics.tool_calls.map((call) => [call.call_id, call]));
  const entries: Entry[] = [];
  items.forEach((item, index) => {
    const entry = buildEntry(item, index, turnOfMessage, calls);
    if (entry) entries.push(entry);
  });
  return numbered(inOrder(entries), metrics);
}

function buildEntry(
  item: LooseRecord,
  index: number,
  turnOfMessage: Map<string, number>,
  calls: Map<string, ToolCall>,
): Entry | null {
  const measured = record(item.metrics);
  const createdMS = epochMS(item.created_at);
  const startMS = epochMS(measured?.started_speaking_at) ?? createdMS;
  const entry: Entry = {
    key: `${text(item.id) ?? "item"}-${index}`,
    kind: "other",
    startMS,
    endMS: epochMS(measured?.stopped_speaking_at),
    turn: turnOfMessage.get(text(item.id) ?? "") ?? null,
    words: "",
    interrupted: item.interrupted === true,
    confidence: typeof item.transcript_confidence === "number" ? item.transcript_confidence : null,
    tool: null,
    label: text(item.type) ?? "item without a type",
    raw: item,
  };
  switch (item.type) {
    case "message":
      entry.kind = item.role === "user" ? "caller" : item.role === "assistant" ? "agent" : "system";
      entry.label = text(item.role) ?? "message";
      entry.words = withoutMarkup(contentText(item.content));
      return entry;
    case "function_call": {
      const callId = text(item.call_id) ?? "";
      const known = calls.get(callId);
      entry.kind = "tool";
      entry.tool = known ?? {
        name: text(item.name) ?? "tool",
        call_id: callId,
        arguments: item.arguments,
        output: null,
        is_error: false,
        turn_number: 0,
        timestamp: null,
      };
      entry.turn = known?.turn_number ?? null;
      entry.words = entry.tool.name;
      return entry;
    }
    case "function_call_output":
      // Shown with its call; alone only when the call is not there.
      if (calls.has(text(item.call_id) ?? "")) return null;
      entry.label = `result of ${text(item.name) ?? "a tool"}`;
      entry.words = text(item.output) ?? "";
      return entry;
    case "agent_handoff":
      entry.kind = "handoff";
      entry.words = `${text(item.old_agent_id) ?? "start"} → ${text(item.new_agent_id) ?? "another agent"}`;
      return entry;
    case "agent_config_update":
      entry.kind = "config";
      entry.words = configWords(item);
      return entry;
    default:
      return entry;
  }
}

function configWords(item: LooseRecord): string {
  const parts: string[] = [];
  if (item.instructions) parts.push("new instructions");
  if (Array.isArray(item.tools_added) && item.tools_added.length > 0) parts.push(`tools added: ${item.tools_added.join(", ")}`);
  if (Array.isArray(item.tools_removed) && item.tools_removed.length > 0) parts.push(`tools removed: ${item.tools_removed.join(", ")}`);
  return parts.join("; ") || "configuration changed";
}

/** Sorts by time. An entry without one stays behind the entry before it; a tool call stays before the reply it led to. */
function inOrder(entries: Entry[]): Entry[] {
  const replyStart = new Map<number, number>();
  for (const entry of entries) {
    if (entry.kind === "agent" && entry.turn !== null && entry.startMS !== null) replyStart.set(entry.turn, entry.startMS);
  }
  let last = -Infinity;
  const keyed = entries.map((entry, index) => {
    let at = entry.startMS ?? last;
    if (entry.kind === "tool" && entry.turn !== null) at = Math.min(at, (replyStart.get(entry.turn) ?? Infinity) - 1);
    last = at;
    return { entry, at, index };
  });
  keyed.sort((a, b) => (a.at === b.at ? a.index - b.index : a.at - b.at));
  return keyed.map(({ entry }) => entry);
}

/** What the caller said belongs to the turn of the reply that follows. */
function numbered(entries: Entry[], metrics: SessionMetrics): Entry[] {
  const lastTurn = metrics.turns.at(-1);
  let next: number | null = lastTurn && lastTurn.agent_text === null ? lastTurn.turn_number : null;
  for (const entry of entries.toReversed()) {
    if (entry.kind === "agent" && entry.turn !== null) next = entry.turn;
    else if (entry.kind === "caller") entry.turn ??= next;
  }
  return entries;
}
