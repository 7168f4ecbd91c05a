import "@mantine/charts/styles.css";
import { LineChart } from "@mantine/charts";
import type { EvalRun } from "../api/types";
import { formatLocal } from "../format/time";
import { formatRate } from "../format/units";
import classes from "./Evals.module.css";

/** The pass rate over the runs of this page, oldest to the left. */
export function PassRateTrend({ runs }: { runs: EvalRun[] }) {
  const points = runs
    .filter((run) => run.pass_rate !== null)
    .toReversed()
    .map((run) => ({ at: formatLocal(run.started_at, false), rate: run.pass_rate }));
  if (points.length < 2) return null;
  const first = points[0]!;
  const last = points.at(-1)!;
  return (
    <figure className={`panel ${classes.trend}`}>
      <figcaption>
        Pass rate of these {points.length} runs: from {formatRate(first.rate)} to {formatRate(last.rate)}
      </figcaption>
      <div aria-hidden>
        <LineChart
          h={120}
          data={points}
          dataKey="at"
          series={[{ name: "rate", label: "Pass rate", color: "var(--st-accent)" }]}
          curveType="linear"
          yAxisProps={{ domain: [0, 1], ticks: [0, 0.5, 1], width: 52 }}
          xAxisProps={{ minTickGap: 60 }}
          valueFormatter={formatRate}
          gridAxis="x"
          strokeWidth={2}
          dotProps={{ r: 3 }}
        />
      </div>
    </figure>
  );
}
