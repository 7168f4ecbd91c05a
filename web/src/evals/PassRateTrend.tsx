import "@mantine/charts/styles.css";
import { LineChart } from "@mantine/charts";
import type { EvalRun } from "../api/types";
import { formatLocal } from "../format/time";
import { formatRate } from "../format/units";
import { runName } from "./runName";
import classes from "./Evals.module.css";

/** Suites that run side by side get a line each; the line's own pattern tells them apart without colours. */
const lines = [
  { color: "var(--st-accent)", strokeDasharray: undefined },
  { color: "var(--st-caller)", strokeDasharray: "6 3" },
  { color: "var(--st-lat-hook)", strokeDasharray: "2 3" },
];

/** The pass rate over the runs of this page, oldest to the left, for the suites that ran most. */
export function PassRateTrend({ runs }: { runs: EvalRun[] }) {
  const ran = runs.filter((run) => run.pass_rate !== null).toReversed();
  const suites = Map.groupBy(ran, suiteOf);
  const names = [...suites.keys()].toSorted((a, b) => suites.get(b)!.length - suites.get(a)!.length).slice(0, lines.length);
  if (ran.length < 2) return null;
  const points = ran
    .filter((run) => names.includes(suiteOf(run)))
    .map((run) => ({ at: formatLocal(run.started_at, false), [suiteOf(run)]: run.pass_rate }));
  return (
    <figure className={`panel ${classes.trend}`}>
      <figcaption>
        Pass rate,{" "}
        {names.map((name) => `${name}: from ${formatRate(suites.get(name)![0]!.pass_rate)} to ${formatRate(suites.get(name)!.at(-1)!.pass_rate)}`).join("; ")}
      </figcaption>
      <div aria-hidden>
        <LineChart
          h={120}
          lineChartProps={{ accessibilityLayer: false }}
          data={points}
          dataKey="at"
          series={names.map((name, index) => ({ name, ...lines[index]! }))}
          curveType="linear"
          connectNulls
          withLegend={names.length > 1}
          legendProps={{ verticalAlign: "top", height: 26 }}
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

function suiteOf(run: EvalRun): string {
  return `${runName(run)} (${run.testing_framework})`;
}
