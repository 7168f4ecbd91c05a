import type { ReactNode } from "react";
import { formatClock, formatLatency } from "../../format/units";
import { segmentNames } from "./Legend";
import type { Target } from "./hits";
import classes from "./Timeline.module.css";

export interface Hover {
  target: Target;
  x: number;
  y: number;
}

/** What lies under the pointer, in words and numbers. */
export function HoverCard({ hover, bounds }: { hover: Hover | null; bounds: number }) {
  if (!hover) return null;
  const toTheLeft = hover.x > bounds * 0.62;
  return (
    <div
      className={classes.hover}
      style={{
        top: hover.y + 18,
        ...(toTheLeft ? { right: bounds - hover.x + 10 } : { left: hover.x + 14 }),
      }}
      aria-hidden
    >
      {describe(hover.target)}
    </div>
  );
}

function describe(target: Target): ReactNode {
  switch (target.type) {
    case "speech": {
      const { speech } = target;
      const seconds = speech.end - speech.start;
      return (
        <>
          <div className={classes.hoverTitle}>
            {speech.who === "agent" ? "Agent" : "Caller"}
            {speech.turn !== null && `, turn ${speech.turn}`} · {formatClock(speech.start, 1)}
            {seconds > 0 && !speech.open && ` · ${seconds.toFixed(1)} s`}
            {speech.open && " · end unknown"}
          </div>
          {speech.interrupted && <div>Cut off by the caller</div>}
          <div className={classes.hoverWords}>{speech.words}</div>
        </>
      );
    }
    case "reply": {
      const { reply } = target;
      return (
        <>
          <div className={classes.hoverTitle}>
            Turn {reply.turn}: {formatLatency(reply.perceivedMS)} to reply{reply.slow && ", slow"}
          </div>
          {reply.segments.map((segment) => (
            <div key={segment.kind}>
              <Row kind={segment.kind} name={segmentNames[segment.kind]} value={formatLatency(segment.ms)} />
              {segment.kind === "wait" && reply.stt && (
                <Row kind="stt" name={`${segmentNames.stt} (inside)`} value={formatLatency(reply.stt.ms)} />
              )}
            </div>
          ))}
        </>
      );
    }
    case "tool":
      return (
        <>
          <div className={classes.hoverTitle}>
            {target.tool.name} {target.tool.isError && "failed"} · {formatLatency((target.tool.end - target.tool.start) * 1000)}
          </div>
          <div className={classes.hoverWords}>{target.tool.detail}</div>
        </>
      );
    case "mark":
      return (
        <div>
          <span className={classes.hoverTitle}>{formatClock(target.mark.at, 1)}</span> {target.mark.label}
        </div>
      );
    case "span": {
      const { row } = target;
      return (
        <>
          <div className={classes.hoverTitle}>{row.span.name}</div>
          <div>
            {formatClock(row.start, 2)} · {row.open ? "never ended" : formatLatency((row.end - row.start) * 1000)}
          </div>
          {row.failed && <div>{row.span.status_message || "failed"}</div>}
        </>
      );
    }
  }
}

function Row({ kind, name, value }: { kind: string; name: string; value: string }) {
  return (
    <div className={classes.hoverRow}>
      <span className={classes.swatch} data-kind={kind} />
      <span>{name}</span>
      <span className="num">{value}</span>
    </div>
  );
}
