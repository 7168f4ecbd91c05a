import type { MarkKind, SegmentKind, Timeline } from "../model/timeline";
import { GlyphIcon } from "./GlyphIcon";
import classes from "./Timeline.module.css";

export const segmentNames: Record<SegmentKind | "stt", string> = {
  wait: "End-of-turn wait",
  stt: "Transcription",
  hook: "Hook",
  llm: "LLM first token",
  tts: "TTS first byte",
  rest: "Unexplained",
};

const markNames: Record<MarkKind, string> = {
  interruption: "Interruption",
  error: "Error",
  handoff: "Handoff",
  silence: "Silence",
  note: "Other event",
};

/** Explains the colours and signs that occur in this call, and no others. */
export function Legend({ timeline }: { timeline: Timeline }) {
  const used = new Set<string>();
  for (const reply of timeline.replies) {
    for (const segment of reply.segments) used.add(segment.kind);
    if (reply.stt) used.add("stt");
    if (reply.slow) used.add("slow");
  }
  const marks = new Set(timeline.marks.map((mark) => mark.kind));
  return (
    <div className={classes.legend}>
      {(Object.keys(segmentNames) as (SegmentKind | "stt")[])
        .filter((kind) => used.has(kind))
        .map((kind) => (
          <span key={kind} className={classes.legendItem}>
            <span className={classes.swatch} data-kind={kind} />
            {segmentNames[kind]}
          </span>
        ))}
      {used.has("slow") && (
        <span className={classes.legendItem}>
          <span className={classes.swatch} data-kind="slow" />
          Slow reply
        </span>
      )}
      {(Object.keys(markNames) as MarkKind[])
        .filter((kind) => marks.has(kind))
        .map((kind) => (
          <span key={kind} className={classes.legendItem}>
            <GlyphIcon kind={kind} />
            {markNames[kind]}
          </span>
        ))}
    </div>
  );
}
