import { formatLatency } from "../../format/units";
import type { SpanRow } from "../model/spans";
import { hatch } from "./glyphs";
import type { Hit } from "./hits";
import type { Palette } from "./palette";
import { rulerStep, toX, type Scale } from "./view";

export const SPAN_ROW_HEIGHT = 20;

export interface SpanScene {
  rows: SpanRow[];
  scale: Scale;
  scrollTop: number;
  height: number;
  palette: Palette;
  font: string;
  selected: string | null;
}

/** Draws the rows that are scrolled into sight and returns what can be pointed at. */
export function drawSpans(ctx: CanvasRenderingContext2D, scene: SpanScene): Hit[] {
  const { rows, scale, palette, font, scrollTop, height } = scene;
  const hits: Hit[] = [];
  const step = rulerStep(scale);
  ctx.fillStyle = palette.lineSoft;
  for (let i = Math.floor(scale.view.start / step); i * step <= scale.view.end; i++) {
    const x = Math.round(toX(scale, i * step));
    if (x >= scale.left) ctx.fillRect(x, 0, 1, height);
  }
  const first = Math.max(0, Math.floor(scrollTop / SPAN_ROW_HEIGHT));
  const last = Math.min(rows.length, Math.ceil((scrollTop + height) / SPAN_ROW_HEIGHT));
  ctx.textBaseline = "middle";
  for (let i = first; i < last; i++) {
    const row = rows[i]!;
    const y = i * SPAN_ROW_HEIGHT - scrollTop;
    if (row.span.span_id === scene.selected) {
      ctx.fillStyle = palette.accentSoft;
      ctx.fillRect(0, y, scale.left + scale.width, SPAN_ROW_HEIGHT);
    }
    drawName(ctx, scene, row, y);
    drawBar(ctx, scene, row, y);
    hits.push({ x: 0, y, width: scale.left + scale.width, height: SPAN_ROW_HEIGHT, target: { type: "span", row } });
  }
  ctx.font = `11px ${font}`;
  return hits;
}

function drawName(ctx: CanvasRenderingContext2D, { scale, palette, font }: SpanScene, row: SpanRow, y: number) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, y, scale.left - 6, SPAN_ROW_HEIGHT);
  ctx.clip();
  ctx.font = `11px ${font}`;
  ctx.textAlign = "left";
  ctx.fillStyle = row.failed ? palette.bad : palette.dim;
  ctx.fillText(`${row.failed ? "✕ " : ""}${row.span.name}`, 10 + Math.min(row.depth, 5) * 7, y + SPAN_ROW_HEIGHT / 2 + 0.5);
  ctx.restore();
}

function drawBar(ctx: CanvasRenderingContext2D, { scale, palette, font }: SpanScene, row: SpanRow, y: number) {
  const right = scale.left + scale.width;
  const x = toX(scale, row.start);
  const end = Math.max(x + 2, toX(scale, row.end));
  ctx.save();
  ctx.beginPath();
  ctx.rect(scale.left, y, scale.width, SPAN_ROW_HEIGHT);
  ctx.clip();
  if (end < scale.left || x > right) {
    // Outside of what is shown: an arrow says on which side.
    ctx.font = `11px ${font}`;
    ctx.fillStyle = palette.dim;
    ctx.textAlign = end < scale.left ? "left" : "right";
    ctx.fillText(end < scale.left ? "‹" : "›", end < scale.left ? scale.left + 3 : right - 3, y + SPAN_ROW_HEIGHT / 2);
    ctx.restore();
    return;
  }
  const colour = row.failed ? palette.bad : palette.accent;
  ctx.globalAlpha = row.failed ? 1 : Math.max(0.35, 1 - row.depth * 0.16);
  ctx.fillStyle = row.open ? hatch(ctx, colour) : colour;
  ctx.fillRect(x, y + 5, end - x, SPAN_ROW_HEIGHT - 10);
  ctx.globalAlpha = 1;
  const label = row.open ? "not ended" : formatLatency((row.end - row.start) * 1000);
  ctx.font = `10.5px ${font}`;
  ctx.fillStyle = palette.dim;
  const labelWidth = ctx.measureText(label).width;
  if (end + 5 + labelWidth < right) {
    ctx.textAlign = "left";
    ctx.fillText(label, end + 5, y + SPAN_ROW_HEIGHT / 2 + 0.5);
  }
  ctx.restore();
}
