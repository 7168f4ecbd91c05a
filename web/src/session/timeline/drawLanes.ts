import { formatClock, formatLatency, SLOW_REPLY_MS } from "../../format/units";
import type { Reply, Speech, Timeline } from "../model/timeline";
import { PEAKS_PER_SECOND, type Peaks } from "../waveform/peaks";
import { drawGlyph, GLYPH_RADIUS, hatch } from "./glyphs";
import type { Hit } from "./hits";
import type { Lane } from "./lanes";
import type { Palette } from "./palette";
import { rulerStep, toX, type Scale } from "./view";

export interface LaneScene {
  timeline: Timeline;
  peaks: Peaks | null;
  lanes: Lane[];
  scale: Scale;
  palette: Palette;
  /** The font of the page, for labels inside the canvas. */
  font: string;
}

/** Draws every lane and returns what can be pointed at. Only what is inside the view costs anything. */
export function drawLanes(ctx: CanvasRenderingContext2D, scene: LaneScene): Hit[] {
  const { lanes, scale, palette } = scene;
  const hits: Hit[] = [];
  const bottom = lanes.at(-1)!.top + lanes.at(-1)!.height;
  ctx.save();
  ctx.beginPath();
  ctx.rect(scale.left, 0, scale.width, bottom);
  ctx.clip();
  drawSlowBands(ctx, scene);
  for (const lane of lanes) {
    if (lane.name !== "overview" && lane.top > 0) line(ctx, scale, lane.top, palette.lineSoft);
    switch (lane.name) {
      case "overview":
        drawOverview(ctx, scene, lane);
        break;
      case "ruler":
        drawRuler(ctx, scene, lane, bottom);
        break;
      case "caller":
      case "agent":
        drawSpeech(ctx, scene, lane, lane.name, hits);
        break;
      case "reply":
        drawReplies(ctx, scene, lane, hits);
        break;
      case "tools":
        drawTools(ctx, scene, lane, hits);
        break;
      case "marks":
        drawMarks(ctx, scene, lane, hits);
        break;
    }
  }
  ctx.restore();
  return hits;
}

function line(ctx: CanvasRenderingContext2D, scale: Scale, y: number, colour: string) {
  ctx.fillStyle = colour;
  ctx.fillRect(scale.left, y, scale.width, 1);
}

function visible(scale: Scale, start: number, end: number): boolean {
  return end >= scale.view.start && start <= scale.view.end;
}

/** A slow reply is a hole in the conversation: it is tinted through all lanes. */
function drawSlowBands(ctx: CanvasRenderingContext2D, { timeline, lanes, scale, palette }: LaneScene) {
  const top = lanes.find((lane) => lane.name === "caller")!.top;
  const reply = lanes.find((lane) => lane.name === "reply")!;
  ctx.fillStyle = palette.warnSoft;
  for (const slow of timeline.replies) {
    if (!slow.slow || !visible(scale, slow.start, slow.end)) continue;
    const x = toX(scale, slow.start);
    ctx.fillRect(x, top, Math.max(2, toX(scale, slow.end) - x), reply.top + reply.height - top);
  }
}

function drawRuler(ctx: CanvasRenderingContext2D, { scale, palette, font }: LaneScene, lane: Lane, bottom: number) {
  const step = rulerStep(scale);
  ctx.font = `11px ${font}`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (let i = Math.floor(scale.view.start / step); i * step <= scale.view.end; i++) {
    const x = Math.round(toX(scale, i * step));
    ctx.fillStyle = palette.lineSoft;
    ctx.fillRect(x, lane.top, 1, bottom - lane.top);
    ctx.fillStyle = palette.dim;
    ctx.fillText(formatClock(i * step, step < 1 ? 1 : 0), x + 4, lane.top + lane.height / 2);
  }
}

function drawSpeech(ctx: CanvasRenderingContext2D, scene: LaneScene, lane: Lane, who: "caller" | "agent", hits: Hit[]) {
  const { timeline, scale, palette, peaks } = scene;
  const top = lane.top + 5;
  const height = lane.height - 10;
  for (const speech of timeline.speech) {
    if (speech.who !== who || !visible(scale, speech.start, speech.end)) continue;
    const x = toX(scale, speech.start);
    if (speech.start === speech.end) {
      drawMessageDot(ctx, x, lane, who === "agent" ? palette.accent : palette.caller);
      hits.push({ x: x - 5, y: lane.top, width: 10, height: lane.height, target: { type: "speech", speech } });
      continue;
    }
    const width = Math.max(2, toX(scale, speech.end) - x);
    drawSpeechBlock(ctx, scene, speech, x, top, width, height);
    hits.push({ x, y: lane.top, width, height: lane.height, target: { type: "speech", speech } });
  }
  if (peaks) {
    drawWaveform(ctx, scene, lane, who === "caller" ? peaks.caller : peaks.agent, who === "caller" ? palette.caller : palette.accent);
  }
  drawTurnNumbers(ctx, scene, lane, who);
}

function drawMessageDot(ctx: CanvasRenderingContext2D, x: number, lane: Lane, colour: string) {
  const y = lane.top + lane.height / 2;
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.moveTo(x, y - 6);
  ctx.lineTo(x + 5, y);
  ctx.lineTo(x, y + 6);
  ctx.lineTo(x - 5, y);
  ctx.fill();
}

function drawSpeechBlock(ctx: CanvasRenderingContext2D, scene: LaneScene, speech: Speech, x: number, y: number, width: number, height: number) {
  const { palette, peaks } = scene;
  const soft = speech.who === "agent" ? palette.accentSoft : palette.callerSoft;
  const strong = speech.who === "agent" ? palette.accent : palette.caller;
  // With a waveform the block is its background; without one it is all there is.
  ctx.fillStyle = speech.open ? hatch(ctx, strong) : soft;
  ctx.beginPath();
  ctx.roundRect(x, y, width, height, Math.min(3, width / 2));
  ctx.fill();
  if (!peaks && !speech.open) {
    ctx.fillStyle = strong;
    ctx.fillRect(x, y, Math.min(3, width), height);
  }
  if (!speech.interrupted) return;
  // Cut off: a torn edge in the colour of interruptions.
  const right = x + width;
  const tooth = 5;
  ctx.fillStyle = palette.warn;
  ctx.beginPath();
  ctx.moveTo(right, y);
  for (let at = 0, out = true; at <= height; at += tooth, out = !out) ctx.lineTo(right - (out ? 0 : tooth), y + at);
  ctx.lineTo(right + 2.5, y + height);
  ctx.lineTo(right + 2.5, y);
  ctx.fill();
  ctx.fillRect(x, y + height - 2.5, width, 2.5);
}

function drawTurnNumbers(ctx: CanvasRenderingContext2D, { timeline, scale, palette, font }: LaneScene, lane: Lane, who: "caller" | "agent") {
  if (who !== "agent") return;
  ctx.font = `600 10.5px ${font}`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  for (const speech of timeline.speech) {
    if (speech.who !== who || speech.turn === null || speech.start === speech.end) continue;
    if (!visible(scale, speech.start, speech.end)) continue;
    const x = toX(scale, speech.start);
    if (toX(scale, speech.end) - x < 22) continue;
    const label = String(speech.turn);
    const left = Math.max(x, scale.left);
    ctx.fillStyle = palette.accentSoft;
    ctx.fillRect(left, lane.top + 5, ctx.measureText(label).width + 9, 13);
    ctx.fillStyle = palette.text;
    ctx.fillText(label, left + 5, lane.top + 7);
  }
}

/** One bar per pixel: the loudest peak that falls on it. */
function drawWaveform(ctx: CanvasRenderingContext2D, { timeline, scale }: LaneScene, lane: Lane, peaks: Uint8Array, colour: string) {
  const middle = lane.top + lane.height / 2;
  const half = lane.height / 2 - 6;
  const perPixel = ((scale.view.end - scale.view.start) / scale.width) * PEAKS_PER_SECOND;
  const first = (scale.view.start - timeline.audioOffset) * PEAKS_PER_SECOND;
  ctx.fillStyle = colour;
  ctx.globalAlpha = 0.25;
  ctx.fillRect(scale.left, middle, scale.width, 1);
  ctx.globalAlpha = 1;
  for (let pixel = 0; pixel < scale.width; pixel++) {
    const from = Math.floor(first + pixel * perPixel);
    const to = Math.max(from + 1, Math.floor(first + (pixel + 1) * perPixel));
    if (to <= 0 || from >= peaks.length) continue;
    let loudest = 0;
    for (let i = Math.max(0, from); i < to && i < peaks.length; i++) loudest = Math.max(loudest, peaks[i]!);
    if (loudest < 2) continue;
    // A square root brings quiet speech up to where it can be seen.
    const height = Math.max(0.5, Math.sqrt(loudest / 255) * half);
    ctx.fillRect(scale.left + pixel, middle - height, 1, height * 2);
  }
}

/** The time at which the reply lane is full, in ms. */
function replyCeiling(timeline: Timeline): number {
  return Math.max(SLOW_REPLY_MS * 1.5, ...timeline.replies.map((reply) => Math.min(reply.perceivedMS, SLOW_REPLY_MS * 5)));
}

function drawReplies(ctx: CanvasRenderingContext2D, scene: LaneScene, lane: Lane, hits: Hit[]) {
  const { timeline, scale, palette, font } = scene;
  const ceiling = replyCeiling(timeline);
  const base = lane.top + lane.height - 3;
  const full = lane.height - 8;
  const limit = base - (SLOW_REPLY_MS / ceiling) * full;
  ctx.strokeStyle = palette.dim;
  ctx.lineWidth = 1;
  ctx.setLineDash([2, 4]);
  ctx.beginPath();
  ctx.moveTo(scale.left, Math.round(limit) + 0.5);
  ctx.lineTo(scale.left + scale.width, Math.round(limit) + 0.5);
  ctx.stroke();
  ctx.setLineDash([]);

  const rest = hatch(ctx, palette.segment.rest);
  // Two replies to the same words overlap: the shorter one stands in front.
  for (const reply of timeline.replies.toSorted((a, b) => b.perceivedMS - a.perceivedMS)) {
    if (!visible(scale, reply.start, reply.end)) continue;
    const x = toX(scale, reply.start);
    const width = Math.max(3, toX(scale, reply.end) - x);
    const height = Math.max(8, Math.min(1, reply.perceivedMS / ceiling) * full);
    drawReplyBar(ctx, scene, reply, { x, y: base - height, width, height }, rest);
    if (reply.slow) drawSlowFlag(ctx, reply, x, width, lane, palette, font);
    hits.push({ x, y: lane.top, width, height: lane.height, target: { type: "reply", reply } });
  }
  ctx.font = `10px ${font}`;
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  ctx.fillStyle = palette.dim;
  ctx.fillText(`${SLOW_REPLY_MS / 1000} s`, scale.left + scale.width - 3, limit - 1);
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

function drawReplyBar(ctx: CanvasRenderingContext2D, { scale, palette }: LaneScene, reply: Reply, box: Box, rest: CanvasPattern | string) {
  // Too narrow to tell the stages apart side by side: they stand on each other instead.
  const upright = box.width < 14;
  const total = reply.end - reply.start || 1;
  let y = box.y + box.height;
  for (const segment of reply.segments) {
    ctx.fillStyle = segment.kind === "rest" ? rest : palette.segment[segment.kind];
    if (upright) {
      const height = ((segment.end - segment.start) / total) * box.height;
      y -= height;
      ctx.fillRect(box.x, y, box.width, height);
    } else {
      const x = toX(scale, segment.start);
      ctx.fillRect(x, box.y, toX(scale, segment.end) - x, box.height);
    }
  }
  if (reply.stt && !upright) {
    ctx.fillStyle = palette.segment.stt;
    const x = toX(scale, reply.stt.start);
    ctx.fillRect(x, box.y + box.height - 5, toX(scale, reply.stt.end) - x, 5);
  }
  ctx.strokeStyle = reply.slow ? palette.warn : palette.line;
  ctx.lineWidth = reply.slow ? 2 : 1;
  ctx.strokeRect(box.x, box.y, box.width, box.height);
}

function drawSlowFlag(ctx: CanvasRenderingContext2D, reply: Reply, x: number, width: number, lane: Lane, palette: Palette, font: string) {
  const label = `slow ${formatLatency(reply.perceivedMS)}`;
  ctx.font = `600 11px ${font}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const needed = ctx.measureText(label).width + 8;
  ctx.fillStyle = palette.warn;
  if (width > 3) ctx.fillText(label, x + width + 5, lane.top + 11, needed);
}

function drawTools(ctx: CanvasRenderingContext2D, { timeline, scale, palette, font }: LaneScene, lane: Lane, hits: Hit[]) {
  const y = lane.top + 4;
  const height = lane.height - 8;
  ctx.font = `11px ${font}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  timeline.tools.forEach((tool, index) => {
    if (!visible(scale, tool.start, tool.end)) return;
    const x = toX(scale, tool.start);
    const width = Math.max(4, toX(scale, tool.end) - x);
    ctx.fillStyle = tool.isError ? palette.bad : tool.open ? hatch(ctx, palette.dim) : palette.dim;
    ctx.fillRect(x, y, width, height);
    // The name stands behind the bar as far as the next bar leaves room.
    const next = timeline.tools[index + 1];
    const room = (next ? toX(scale, next.start) : Infinity) - (x + width + 8);
    ctx.fillStyle = tool.isError ? palette.bad : palette.text;
    ctx.fillText(fitted(ctx, tool.isError ? `✕ ${tool.name}` : tool.name, room), x + width + 4, lane.top + lane.height / 2 + 0.5);
    hits.push({ x, y: lane.top, width: Math.max(width, 6), height: lane.height, target: { type: "tool", tool } });
  });
}

/** The text as far as it fits, "" when not even its beginning does. */
function fitted(ctx: CanvasRenderingContext2D, words: string, room: number): string {
  const width = ctx.measureText(words).width;
  if (width <= room) return words;
  const keep = Math.floor((words.length * room) / width) - 1;
  return keep < 2 ? "" : `${words.slice(0, keep)}…`;
}

function drawMarks(ctx: CanvasRenderingContext2D, { timeline, scale, palette }: LaneScene, lane: Lane, hits: Hit[]) {
  const y = lane.top + lane.height / 2;
  // What matters is drawn last, on top.
  const order = { note: 0, silence: 1, handoff: 2, interruption: 3, error: 4 };
  const shown = timeline.marks.filter((mark) => visible(scale, mark.at, mark.at));
  for (const mark of shown.toSorted((a, b) => order[a.kind] - order[b.kind])) {
    const x = Math.max(scale.left + GLYPH_RADIUS, Math.min(toX(scale, mark.at), scale.left + scale.width - GLYPH_RADIUS));
    drawGlyph(ctx, mark.kind, x, y, palette);
    hits.push({ x: x - GLYPH_RADIUS, y: lane.top, width: GLYPH_RADIUS * 2, height: lane.height, target: { type: "mark", mark } });
  }
}

/** The whole call in a strip: reply times as spikes, trouble as ticks, a frame around what the lanes show. */
function drawOverview(ctx: CanvasRenderingContext2D, scene: LaneScene, lane: Lane) {
  const { timeline, palette } = scene;
  const whole: Scale = { ...scene.scale, view: { start: 0, end: timeline.duration } };
  const ceiling = replyCeiling(timeline);
  const base = lane.top + lane.height - 4;
  for (const reply of timeline.replies) {
    const height = Math.max(2, Math.min(1, reply.perceivedMS / ceiling) * (lane.height - 10));
    ctx.fillStyle = reply.slow ? palette.warn : palette.segment.wait;
    ctx.fillRect(toX(whole, reply.end), base - height, 2, height);
  }
  for (const mark of timeline.marks) {
    if (mark.kind !== "error" && mark.kind !== "interruption") continue;
    ctx.fillStyle = mark.kind === "error" ? palette.bad : palette.warn;
    ctx.fillRect(toX(whole, mark.at), lane.top + 1, 2, 4);
  }
  const x = toX(whole, scene.scale.view.start);
  const width = Math.max(6, toX(whole, scene.scale.view.end) - x);
  ctx.strokeStyle = palette.accent;
  ctx.lineWidth = 1.5;
  ctx.strokeRect(x + 0.75, lane.top + 0.75, width - 1.5, lane.height - 3);
}
