/** The part of the axis that is on the screen, in seconds. */
export interface View {
  start: number;
  end: number;
}

/** Closer than this nothing more can be told apart: latencies are tens of milliseconds. */
const minSeconds = 0.5;

/** Keeps a view inside the call and not too small. */
export function clampView(view: View, duration: number): View {
  const length = Math.min(Math.max(view.end - view.start, minSeconds), Math.max(duration, minSeconds));
  const start = Math.min(Math.max(0, view.start), Math.max(0, duration - length));
  return { start, end: start + length };
}

/** Zooms so that the position under the pointer stays where it is. A factor below 1 zooms in. */
export function zoomAt(view: View, position: number, factor: number, duration: number): View {
  return clampView(
    { start: position - (position - view.start) * factor, end: position + (view.end - position) * factor },
    duration,
  );
}

export function pan(view: View, seconds: number, duration: number): View {
  return clampView({ start: view.start + seconds, end: view.end + seconds }, duration);
}

/** Turns the page when the cursor runs out of the view. */
export function follow(view: View, position: number, duration: number): View {
  if (position >= view.start && position <= view.end) return view;
  const length = view.end - view.start;
  return clampView({ start: position - length * 0.1, end: position + length * 0.9 }, duration);
}

/** Maps seconds to pixels right of the label column. */
export interface Scale {
  left: number;
  width: number;
  view: View;
}

export function toX(scale: Scale, seconds: number): number {
  return scale.left + ((seconds - scale.view.start) / (scale.view.end - scale.view.start)) * scale.width;
}

export function toSeconds(scale: Scale, x: number): number {
  return scale.view.start + ((x - scale.left) / scale.width) * (scale.view.end - scale.view.start);
}

const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];

/** Seconds between two labels of the ruler, so that they stand at least 70 px apart. */
export function rulerStep(scale: Scale): number {
  const secondsPerPixel = (scale.view.end - scale.view.start) / scale.width;
  return steps.find((step) => step / secondsPerPixel >= 70) ?? 7200;
}
