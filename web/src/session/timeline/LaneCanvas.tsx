import { useCallback, useRef, type Dispatch, type KeyboardEvent, type SetStateAction } from "react";
import { formatClock } from "../../format/units";
import type { Timeline } from "../model/timeline";
import type { Playback } from "../playback/Playback";
import { usePlaybackValue } from "../playback/usePlayback";
import type { Peaks } from "../waveform/peaks";
import { drawLanes } from "./drawLanes";
import { seekPosition, type Hit, type Target } from "./hits";
import type { Hover } from "./HoverCard";
import type { Lane } from "./lanes";
import type { Palette } from "./palette";
import { useCanvas } from "./useCanvas";
import { usePointer } from "./usePointer";
import { clampView, toSeconds, type Scale, type View } from "./view";
import classes from "./Timeline.module.css";

interface LaneCanvasProps {
  timeline: Timeline;
  peaks: Peaks | null;
  lanes: Lane[];
  height: number;
  scale: Scale;
  playback: Playback;
  onView: Dispatch<SetStateAction<View>>;
  onZoom: (factor: number, at?: number) => void;
  onFit: () => void;
  onHover: (hover: Hover | null) => void;
}

export function LaneCanvas({ timeline, peaks, lanes, height, scale, playback, onView, onZoom, onFit, onHover }: LaneCanvasProps) {
  const hits = useRef<Hit[]>([]);
  const draw = useCallback(
    (ctx: CanvasRenderingContext2D, palette: Palette, font: string) => {
      hits.current = drawLanes(ctx, { timeline, peaks, lanes, scale, palette, font });
    },
    [timeline, peaks, lanes, scale],
  );
  const canvas = useCanvas(scale.left + scale.width, height, draw);
  const overview = lanes.find((lane) => lane.name === "overview");

  const click = (target: Target | null, seconds: number, y: number) => {
    if (overview && y < overview.top + overview.height) {
      const length = scale.view.end - scale.view.start;
      const x = ((seconds - scale.view.start) / length) * timeline.duration;
      onView(clampView({ start: x - length / 2, end: x + length / 2 }, timeline.duration));
      playback.seek(x);
    } else if (target && target.type !== "speech") {
      playback.seek(seekPosition(target));
    } else if (toSeconds(scale, scale.left) <= seconds) {
      playback.seek(seconds);
    }
  };
  const pointer = usePointer({
    canvas,
    hits,
    scale,
    duration: timeline.duration,
    onClick: click,
    onHover: (target, x, y) => onHover(target ? { target, x, y } : null),
    onView,
    onZoom,
  });

  const second = usePlaybackValue(playback, (state) => Math.floor(state.position));
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") onZoom(0.6);
    else if (event.key === "-") onZoom(1 / 0.6);
    else if (event.key === "0") onFit();
    else if (event.key === "Home") playback.seek(0);
    else if (event.key === "End") playback.seek(timeline.duration);
    else return;
    event.preventDefault();
  };

  return (
    <div
      className={classes.lanes}
      style={{ height }}
      role="slider"
      tabIndex={0}
      aria-label="Position in the call"
      aria-valuemin={0}
      aria-valuemax={Math.round(timeline.duration)}
      aria-valuenow={Math.min(second, Math.round(timeline.duration))}
      aria-valuetext={`${formatClock(second)} of ${formatClock(timeline.duration)}`}
      onKeyDown={onKeyDown}
    >
      {lanes.map((lane) => (
        <div key={lane.name} className={classes.label} style={{ top: lane.top, height: lane.height, width: scale.left }}>
          {lane.label}
        </div>
      ))}
      <canvas
        ref={canvas}
        className={classes.canvas}
        style={{ width: scale.left + scale.width, height }}
        data-testid="lanes"
        data-left={scale.left}
        data-start={scale.view.start}
        data-end={scale.view.end}
        data-waveform={peaks !== null}
        aria-hidden
        {...pointer}
      />
    </div>
  );
}
