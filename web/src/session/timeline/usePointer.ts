import { useEffect, useRef, type PointerEvent as ReactPointerEvent, type RefObject } from "react";
import { hitAt, type Hit, type Target } from "./hits";
import { pan, toSeconds, type Scale, type View } from "./view";

interface PointerOptions {
  canvas: RefObject<HTMLCanvasElement | null>;
  hits: RefObject<Hit[]>;
  scale: Scale;
  duration: number;
  onClick: (target: Target | null, seconds: number, y: number) => void;
  onHover: (target: Target | null, x: number, y: number) => void;
  onView: (change: (view: View) => View) => void;
  onZoom: (factor: number, at?: number) => void;
}

/** Pixels the pointer may move before a click becomes a drag. */
const dragFrom = 4;

/** Click, hover, drag to pan, Ctrl and wheel or pinch to zoom, sideways wheel to pan. The plain wheel scrolls the page. */
export function usePointer({ canvas, hits, scale, duration, onClick, onHover, onView, onZoom }: PointerOptions) {
  const drag = useRef<{ x: number; moved: boolean } | null>(null);
  const secondsPerPixel = (scale.view.end - scale.view.start) / Math.max(1, scale.width);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const onWheel = (event: WheelEvent) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        onZoom(Math.exp(event.deltaY * 0.0045), toSeconds(scale, event.offsetX));
        return;
      }
      const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
      if (sideways === 0 || (!event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY))) return;
      event.preventDefault();
      onView((view) => pan(view, sideways * secondsPerPixel, duration));
    };
    // React listens passively, and a passive listener may not keep the page from zooming.
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [canvas, scale, duration, secondsPerPixel, onView, onZoom]);

  const at = (event: ReactPointerEvent<HTMLCanvasElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  return {
    onPointerDown: (event: ReactPointerEvent<HTMLCanvasElement>) => {
      if (event.button !== 0) return;
      drag.current = { x: at(event).x, moved: false };
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: ReactPointerEvent<HTMLCanvasElement>) => {
      const { x, y } = at(event);
      const dragging = drag.current;
      if (!dragging) {
        onHover(hitAt(hits.current, x, y), x, y);
        return;
      }
      if (!dragging.moved && Math.abs(x - dragging.x) < dragFrom) return;
      const seconds = (dragging.x - x) * secondsPerPixel;
      drag.current = { x, moved: true };
      onHover(null, x, y);
      onView((view) => pan(view, seconds, duration));
    },
    onPointerUp: (event: ReactPointerEvent<HTMLCanvasElement>) => {
      const dragging = drag.current;
      drag.current = null;
      if (!dragging || dragging.moved) return;
      const { x, y } = at(event);
      onClick(hitAt(hits.current, x, y), toSeconds(scale, x), y);
    },
    onPointerCancel: () => {
      drag.current = null;
    },
  };
}
