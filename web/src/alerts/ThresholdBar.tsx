import classes from "./Alerts.module.css";

interface ThresholdBarProps {
  value: number | null;
  threshold: number;
  format: (value: number | null) => string;
}

/** The last value as a bar with the threshold as a line through it: what crosses the line is too much. */
export function ThresholdBar({ value, threshold, format }: ThresholdBarProps) {
  const full = Math.max(threshold * 1.6, value ?? 0);
  const above = value !== null && value > threshold;
  return (
    <span className={classes.threshold} data-above={above || undefined}>
      <span className={classes.track} aria-hidden>
        {value !== null && <span className={classes.fill} style={{ width: `${(value / full) * 100}%` }} />}
        <span className={classes.limit} style={{ left: `${(threshold / full) * 100}%` }} />
      </span>
      <span>
        <b className={classes.value}>{format(value)}</b> <span className={classes.of}>{above ? "above" : "of"} {format(threshold)}</span>
      </span>
    </span>
  );
}
