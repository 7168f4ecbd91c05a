import type { Span } from "../../api/types";
import { epochMS } from "./loose";

/** One row of the waterfall; positions in seconds on the session's axis. */
export interface SpanRow {
  span: Span;
  depth: number;
  start: number;
  end: number;
  /** The span never ended, or its end never arrived. */
  open: boolean;
  failed: boolean;
}

/** Puts spans under their parents, siblings by start. Orphans become roots; a loop of parents is cut. */
export function buildSpanRows(spans: Span[], originMS: number, duration: number): SpanRow[] {
  const byId = new Map(spans.map((span) => [span.span_id, span]));
  const children = new Map<string, Span[]>();
  const roots: Span[] = [];
  for (const span of spans) {
    const parent = byId.get(span.parent_span_id ?? "");
    if (!parent || parent === span) roots.push(span);
    else if (children.has(parent.span_id)) children.get(parent.span_id)!.push(span);
    else children.set(parent.span_id, [span]);
  }
  const start = (span: Span) => epochMS(span.started_at) ?? originMS;
  const byStart = (a: Span, b: Span) => start(a) - start(b);

  const rows: SpanRow[] = [];
  const seen = new Set<string>();
  const visit = (first: Span) => {
    const stack = [{ span: first, depth: 0 }];
    for (let top = stack.pop(); top; top = stack.pop()) {
      const { span, depth } = top;
      if (seen.has(span.span_id)) continue;
      seen.add(span.span_id);
      const endMS = epochMS(span.ended_at);
      const from = (start(span) - originMS) / 1000;
      rows.push({
        span,
        depth,
        start: from,
        end: endMS === null ? Math.max(from, duration) : (endMS - originMS) / 1000,
        open: endMS === null,
        failed: span.status === "error",
      });
      const below = (children.get(span.span_id) ?? []).toSorted(byStart).toReversed();
      stack.push(...below.map((child) => ({ span: child, depth: depth + 1 })));
    }
  };
  roots.toSorted(byStart).forEach(visit);
  spans.forEach(visit); // what is left hangs in a loop of parents
  return rows;
}
