import { useCallback } from "react";
import type { MarkKind } from "../model/timeline";
import { drawGlyph } from "./glyphs";
import type { Palette } from "./palette";
import { useCanvas } from "./useCanvas";
import classes from "./Timeline.module.css";

/** A mark as it looks in the timeline, for the legend. */
export function GlyphIcon({ kind }: { kind: MarkKind }) {
  const draw = useCallback(
    (ctx: CanvasRenderingContext2D, palette: Palette) => drawGlyph(ctx, kind, 8, 8, palette),
    [kind],
  );
  return <canvas ref={useCanvas(16, 16, draw)} className={classes.glyph} aria-hidden />;
}
