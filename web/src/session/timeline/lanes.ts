import type { Timeline } from "../model/timeline";

export type LaneName = "overview" | "ruler" | "caller" | "agent" | "reply" | "tools" | "marks";

export interface Lane {
  name: LaneName;
  label: string;
  top: number;
  height: number;
}

/** Calls shorter than this fit on a screen; longer ones get a strip that shows the whole call. */
const overviewFromSeconds = 180;

/** The rows of the timeline from top to bottom; what a session does not have gets no row. */
export function layoutLanes(timeline: Timeline, hasWaveform: boolean): { lanes: Lane[]; height: number } {
  const voice = hasWaveform ? 60 : timeline.isText ? 26 : 38;
  const wanted: [LaneName, string, number][] = [
    ["ruler", "", 22],
    ["caller", timeline.isText ? "User" : "Caller", voice],
    ["agent", "Agent", voice],
    ["reply", timeline.isText ? "LLM time" : "Reply time", 64],
    ["marks", "Events", 24],
  ];
  if (timeline.tools.length > 0) wanted.splice(4, 0, ["tools", "Tools", 24]);
  if (timeline.duration > overviewFromSeconds) wanted.unshift(["overview", "Whole call", 26]);

  const lanes: Lane[] = [];
  let top = 0;
  for (const [name, label, height] of wanted) {
    lanes.push({ name, label, top, height });
    top += height;
  }
  return { lanes, height: top };
}
