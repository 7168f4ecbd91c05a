import type { Mark, Reply, Speech, ToolSpan } from "../model/timeline";
import type { SpanRow } from "../model/spans";

/** What lies under the pointer. */
export type Target =
  | { type: "speech"; speech: Speech }
  | { type: "reply"; reply: Reply }
  | { type: "tool"; tool: ToolSpan }
  | { type: "mark"; mark: Mark }
  | { type: "span"; row: SpanRow };

export interface Hit {
  x: number;
  y: number;
  width: number;
  height: number;
  target: Target;
}

/** Things drawn later lie on top. Narrow ones can be hit within a few pixels. */
export function hitAt(hits: Hit[], x: number, y: number): Target | null {
  const slack = 3;
  for (let i = hits.length - 1; i >= 0; i--) {
    const hit = hits[i]!;
    const extra = hit.width < 8 ? slack : 0;
    if (x >= hit.x - extra && x <= hit.x + hit.width + extra && y >= hit.y && y <= hit.y + hit.height) return hit.target;
  }
  return null;
}

/** Where a click on the target seeks to. */
export function seekPosition(target: Target): number {
  switch (target.type) {
    case "speech":
      return target.speech.start;
    case "reply":
      return target.reply.start;
    case "tool":
      return target.tool.start;
    case "mark":
      return target.mark.at;
    case "span":
      return target.row.start;
  }
}
