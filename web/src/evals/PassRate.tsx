import { formatRate } from "../format/units";
import classes from "./Evals.module.css";

/** A pass rate as a small bar with its number. */
export function PassRate({ rate }: { rate: number | null }) {
  return (
    <span className={classes.rate}>
      <span className={classes.track} data-low={(rate !== null && rate < 1) || undefined} aria-hidden>
        {rate !== null && <span className={classes.fill} style={{ width: `${rate * 100}%` }} />}
      </span>
      <span className={classes.rateNumber}>{formatRate(rate)}</span>
    </span>
  );
}
