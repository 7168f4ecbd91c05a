import { useElementSize } from "@mantine/hooks";
import { useCallback, useEffect, useMemo, useState } from "react";
import type { SpanRow } from "../model/spans";
import type { Timeline as TimelineModel } from "../model/timeline";
import type { Playback } from "../playback/Playback";
import type { Peaks } from "../waveform/peaks";
import { Cursor } from "./Cursor";
import { HoverCard, type Hover } from "./HoverCard";
import { LaneCanvas } from "./LaneCanvas";
import { layoutLanes } from "./lanes";
import { Legend } from "./Legend";
import { SpanCanvas } from "./SpanCanvas";
import { clampView, follow, zoomAt, type Scale, type View } from "./view";
import { ZoomButtons } from "./ZoomButtons";
import classes from "./Timeline.module.css";

interface TimelineProps {
  timeline: TimelineModel;
  playback: Playback;
  peaks: Peaks | null;
  hasRecording: boolean;
  spans: SpanRow[];
  selectedSpan: string | null;
  onSelectSpan: (row: SpanRow) => void;
}

const labelWidth = { wide: 112, narrow: 76 };
/** What a deep link into a long call shows around its target, in seconds. */
const closeUp = { from: 180, before: 15, after: 45 };

/** Everything that happened, on one axis: voices, reply times, tools, events and the spans below. */
export function Timeline({ timeline, playback, peaks, hasRecording, spans, selectedSpan, onSelectSpan }: TimelineProps) {
  const { ref, width } = useElementSize();
  const { duration } = timeline;
  const [view, setView] = useState<View>(() => initialView(playback.snapshot().position, duration));
  const [hover, setHover] = useState<Hover | null>(null);
  const left = width < 560 ? labelWidth.narrow : labelWidth.wide;
  const scale = useMemo<Scale>(() => ({ left, width: Math.max(0, width - left), view }), [left, width, view]);
  const { lanes, height } = useMemo(() => layoutLanes(timeline, hasRecording), [timeline, hasRecording]);

  // A call that is still going on grows; whoever looks at all of it keeps looking at all of it.
  const [knownDuration, setKnownDuration] = useState(duration);
  if (duration !== knownDuration) {
    setKnownDuration(duration);
    const sawAll = view.start <= 0 && view.end >= knownDuration - 0.01;
    setView(sawAll ? { start: 0, end: duration } : clampView(view, duration));
  }

  useEffect(() => {
    let last = playback.snapshot().position;
    return playback.subscribe(() => {
      const { position } = playback.snapshot();
      if (position === last) return;
      last = position;
      setView((current) => follow(current, position, duration));
    });
  }, [playback, duration]);

  const zoom = useCallback(
    (factor: number, at?: number) => setView((current) => zoomAt(current, at ?? focusOf(current, playback), factor, duration)),
    [duration, playback],
  );
  const fit = useCallback(() => setView({ start: 0, end: duration }), [duration]);

  return (
    <section aria-label="Timeline" className={classes.timeline}>
      <div className={classes.head}>
        <Legend timeline={timeline} />
        <ZoomButtons onZoom={zoom} onFit={fit} atFit={view.end - view.start >= duration - 0.01} />
      </div>
      <div ref={ref} className={classes.body} onPointerLeave={() => setHover(null)}>
        {width > 0 && (
          <>
            <LaneCanvas
              timeline={timeline}
              peaks={peaks}
              lanes={lanes}
              height={height}
              scale={scale}
              playback={playback}
              onView={setView}
              onZoom={zoom}
              onFit={fit}
              onHover={setHover}
            />
            {spans.length > 0 && (
              <SpanCanvas
                rows={spans}
                scale={scale}
                duration={duration}
                playback={playback}
                selected={selectedSpan}
                onSelect={onSelectSpan}
                onView={setView}
                onZoom={zoom}
                onHover={setHover}
              />
            )}
            <Cursor playback={playback} scale={scale} />
            <HoverCard hover={hover} bounds={width} />
          </>
        )}
      </div>
    </section>
  );
}

function initialView(position: number, duration: number): View {
  if (position > 0 && duration > closeUp.from) {
    return clampView({ start: position - closeUp.before, end: position + closeUp.after }, duration);
  }
  return { start: 0, end: duration };
}

/** Zooming by button or key keeps the cursor in place, if it is in sight, else the middle. */
function focusOf(view: View, playback: Playback): number {
  const { position } = playback.snapshot();
  return position >= view.start && position <= view.end ? position : (view.start + view.end) / 2;
}
