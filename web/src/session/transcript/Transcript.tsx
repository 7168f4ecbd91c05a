import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef } from "react";
import type { Timeline } from "../model/timeline";
import type { Playback } from "../playback/Playback";
import { usePlaybackValue } from "../playback/usePlayback";
import { TranscriptEntry } from "./TranscriptEntry";
import classes from "./Transcript.module.css";

interface TranscriptProps {
  timeline: Timeline;
  playback: Playback;
}

/** The words with tools and handoffs between them. Only what is in sight is in the page, so 500 turns scroll well. */
export function Transcript({ timeline, playback }: TranscriptProps) {
  const box = useRef<HTMLDivElement>(null);
  const { entries, originMS, replies } = timeline;
  const replyOfTurn = useMemo(() => new Map(replies.map((reply) => [reply.turn, reply])), [replies]);
  const positions = useMemo(
    () => entries.map((entry) => (entry.startMS === null || originMS === null ? null : (entry.startMS - originMS) / 1000)),
    [entries, originMS],
  );
  const current = usePlaybackValue(playback, (state) => entryAt(positions, state.position));
  const playing = usePlaybackValue(playback, (state) => state.playing);

  const rows = useVirtualizer({
    count: entries.length,
    getScrollElement: () => box.current,
    estimateSize: () => 62,
    overscan: 8,
    getItemKey: (index) => entries[index]!.key,
  });

  // Follows the cursor, also when a click or a link moved it. Smooth scrolling cannot aim at rows not yet measured.
  useEffect(() => {
    if (current >= 0) rows.scrollToIndex(current, { align: "auto" });
  }, [current, playing, rows]);

  if (entries.length === 0) return <p className={classes.empty}>No transcript was sent for this session.</p>;
  return (
    <div ref={box} className={classes.box} tabIndex={0} role="region" aria-label="Transcript">
      <ol className={classes.list} style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((item) => {
          const entry = entries[item.index]!;
          return (
            <li
              key={item.key}
              ref={rows.measureElement}
              data-index={item.index}
              className={classes.item}
              style={{ transform: `translateY(${item.start}px)` }}
              aria-setsize={entries.length}
              aria-posinset={item.index + 1}
            >
              <TranscriptEntry
                entry={entry}
                position={positions[item.index] ?? null}
                reply={entry.kind === "agent" && entry.turn !== null ? (replyOfTurn.get(entry.turn) ?? null) : null}
                current={item.index === current}
                isText={timeline.isText}
                onSeek={(seconds) => playback.seek(seconds)}
              />
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** The last entry that has begun, -1 before the first. */
function entryAt(positions: (number | null)[], position: number): number {
  let found = -1;
  for (let i = 0; i < positions.length; i++) {
    const start = positions[i];
    if (start !== null && start !== undefined && start <= position + 0.05) found = i;
  }
  return found;
}
