import type { MarkKind } from "../model/timeline";
import type { Palette } from "./palette";

/** Half the width of a mark in pixels. */
export const GLYPH_RADIUS = 7;

/** Draws a mark. Each kind has a shape of its own, so that the colour is not the only sign. */
export function drawGlyph(ctx: CanvasRenderingContext2D, kind: MarkKind, x: number, y: number, palette: Palette) {
  const r = GLYPH_RADIUS;
  ctx.lineWidth = 1.6;
  ctx.lineJoin = "round";
  ctx.lineCap = "round";
  ctx.beginPath();
  switch (kind) {
    case "interruption": // a flash
      ctx.fillStyle = palette.warn;
      ctx.moveTo(x + 2, y - r);
      ctx.lineTo(x - 5, y + 1.5);
      ctx.lineTo(x - 0.5, y + 1.5);
      ctx.lineTo(x - 2, y + r);
      ctx.lineTo(x + 5, y - 1.5);
      ctx.lineTo(x + 0.5, y - 1.5);
      ctx.closePath();
      ctx.fill();
      return;
    case "error": // a filled circle with a cross
      ctx.fillStyle = palette.bad;
      ctx.arc(x, y, r, 0, Math.PI * 2);
      ctx.fill();
      ctx.strokeStyle = palette.panel;
      ctx.beginPath();
      ctx.moveTo(x - 2.6, y - 2.6);
      ctx.lineTo(x + 2.6, y + 2.6);
      ctx.moveTo(x + 2.6, y - 2.6);
      ctx.lineTo(x - 2.6, y + 2.6);
      ctx.stroke();
      return;
    case "handoff": // an arrow
      ctx.strokeStyle = palette.accent;
      ctx.moveTo(x - r, y);
      ctx.lineTo(x + r, y);
      ctx.moveTo(x + r - 4, y - 4);
      ctx.lineTo(x + r, y);
      ctx.lineTo(x + r - 4, y + 4);
      ctx.stroke();
      return;
    case "silence": // two bars, a pause
      ctx.fillStyle = palette.dim;
      ctx.rect(x - 4, y - 5, 3, 10);
      ctx.rect(x + 1, y - 5, 3, 10);
      ctx.fill();
      return;
    case "note": // a small ring
      ctx.strokeStyle = palette.dim;
      ctx.arc(x, y, 3, 0, Math.PI * 2);
      ctx.stroke();
      return;
  }
}

/** Diagonal lines, for what has no explanation or no end. */
export function hatch(ctx: CanvasRenderingContext2D, colour: string): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  if (!pen) return colour;
  pen.strokeStyle = colour;
  pen.lineWidth = 1.4;
  pen.beginPath();
  pen.moveTo(-1, 7);
  pen.lineTo(7, -1);
  pen.moveTo(-1, 1);
  pen.lineTo(1, -1);
  pen.moveTo(5, 7);
  pen.lineTo(7, 5);
  pen.stroke();
  return ctx.createPattern(tile, "repeat") ?? colour;
}
