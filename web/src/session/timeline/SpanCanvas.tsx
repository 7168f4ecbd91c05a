import { useCallback, useRef, useState, type Dispatch, type KeyboardEvent, type SetStateAction } from "react";
import type { SpanRow } from "../model/spans";
import type { Playback } from "../playback/Playback";
import { drawSpans, SPAN_ROW_HEIGHT } from "./drawSpans";
import { seekPosition, type Hit, type Target } from "./hits";
import type { Hover } from "./HoverCard";
import type { Palette } from "./palette";
import { useCanvas } from "./useCanvas";
import { usePointer } from "./usePointer";
import type { Scale, View } from "./view";
import classes from "./Timeline.module.css";

interface SpanCanvasProps {
  rows: SpanRow[];
  scale: Scale;
  duration: number;
  playback: Playback;
  selected: string | null;
  onSelect: (row: SpanRow) => void;
  onView: Dispatch<SetStateAction<View>>;
  onZoom: (factor: number, at?: number) => void;
  onHover: (hover: Hover | null) => void;
}

const maxHeight = SPAN_ROW_HEIGHT * 11;

/** The spans as a waterfall on the axis of the lanes above. Only the rows in sight are drawn. */
export function SpanCanvas({ rows, scale, duration, playback, selected, onSelect, onView, onZoom, onHover }: SpanCanvasProps) {
  const hits = useRef<Hit[]>([]);
  const box = useRef<HTMLDivElement>(null);
  const [scrollTop, setScrollTop] = useState(0);
  const total = rows.length * SPAN_ROW_HEIGHT;
  const height = Math.min(maxHeight, total);
  const draw = useCallback(
    (ctx: CanvasRenderingContext2D, palette: Palette, font: string) => {
      hits.current = drawSpans(ctx, { rows, scale, scrollTop, height, palette, font, selected });
    },
    [rows, scale, scrollTop, height, selected],
  );
  const canvas = useCanvas(scale.left + scale.width, height, draw);
  const click = (target: Target | null) => {
    if (target?.type !== "span") return;
    playback.seek(seekPosition(target));
    onSelect(target.row);
  };
  const pointer = usePointer({
    canvas,
    hits,
    scale,
    duration,
    onClick: click,
    onHover: (target, x, y) => onHover(target ? { target, x, y: y + (box.current?.offsetTop ?? 0) } : null),
    onView,
    onZoom,
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = rows.findIndex((row) => row.span.span_id === selected);
    const next = Math.min(rows.length - 1, Math.max(0, at + step));
    const top = next * SPAN_ROW_HEIGHT;
    if (top < scrollTop) box.current?.scrollTo(0, top);
    else if (top + SPAN_ROW_HEIGHT > scrollTop + height) box.current?.scrollTo(0, top + SPAN_ROW_HEIGHT - height);
    onSelect(rows[next]!);
  };
  return (
    <div
      ref={box}
      className={classes.spans}
      style={{ height }}
      role="region"
      tabIndex={0}
      aria-label="Spans. Up and down choose one; what it carries is shown below"
      onKeyDown={onKeyDown}
      onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}
    >
      <div style={{ height: total }}>
        <canvas
          ref={canvas}
          className={classes.spanCanvas}
          style={{ width: scale.left + scale.width, height }}
          data-testid="spans"
          aria-hidden
          {...pointer}
        />
      </div>
    </div>
  );
}
