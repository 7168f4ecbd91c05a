import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef, type RefObject } from "react";
import { readPalette, type Palette } from "./palette";

/** Draws on a canvas of the given size in CSS pixels whenever what is drawn, or the colour scheme, changes. */
export function useCanvas(
  width: number,
  height: number,
  draw: (ctx: CanvasRenderingContext2D, palette: Palette, font: string) => void,
): RefObject<HTMLCanvasElement | null> {
  const canvas = useRef<HTMLCanvasElement>(null);
  const scheme = useComputedColorScheme("light");
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      const element = canvas.current;
      const ctx = element?.getContext("2d");
      if (!element || !ctx || width <= 0 || height <= 0) return;
      const ratio = window.devicePixelRatio || 1;
      element.width = Math.round(width * ratio);
      element.height = Math.round(height * ratio);
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.clearRect(0, 0, width, height);
      draw(ctx, readPalette(), getComputedStyle(document.body).fontFamily);
    });
    return () => cancelAnimationFrame(frame);
  }, [width, height, draw, scheme]);
  return canvas;
}
