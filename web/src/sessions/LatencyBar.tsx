import { formatLatency, SLOW_REPLY_MS } from "../format/units";
import classes from "./SessionTable.module.css";

/** The bar is full at this many ms; the slow threshold is its middle. */
const fullMS = SLOW_REPLY_MS * 2;

/** A latency as a small bar with its number; slow ones stand out. */
export function LatencyBar({ ms }: { ms: number | null }) {
  const slow = ms !== null && ms > SLOW_REPLY_MS;
  return (
    <span className={classes.bar} data-slow={slow || undefined}>
      <span className={classes.track} aria-hidden>
        {ms !== null && <span className={classes.fill} style={{ width: `${Math.min(100, (ms / fullMS) * 100)}%` }} />}
      </span>
      <span className={classes.number}>{formatLatency(ms)}</span>
    </span>
  );
}
