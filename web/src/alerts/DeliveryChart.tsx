import "@mantine/charts/styles.css";
import { BarChart } from "@mantine/charts";
import type { WebhookStats } from "../api/types";
import { formatLocal } from "../format/time";
import { formatCount } from "../format/units";

/** Attempts over time, the refused ones on top. The numbers beside it say the same in words. */
export function DeliveryChart({ stats }: { stats: WebhookStats }) {
  const data = stats.buckets.map((bucket) => ({
    at: formatLocal(bucket.bucket_start, false),
    accepted: bucket.accepted,
    refused: bucket.attempts - bucket.accepted,
  }));
  return (
    <div aria-hidden>
      <BarChart
        h={150}
        barChartProps={{ accessibilityLayer: false }}
        data={data}
        dataKey="at"
        type="stacked"
        series={[
          { name: "accepted", label: "Accepted", color: "var(--st-accent)" },
          { name: "refused", label: "Not accepted", color: "var(--st-bad)" },
        ]}
        valueFormatter={formatCount}
        withLegend
        legendProps={{ verticalAlign: "bottom", height: 30 }}
        maxBarWidth={48}
        gridAxis="x"
        yAxisProps={{ width: 36, allowDecimals: false }}
        xAxisProps={{ minTickGap: 50 }}
      />
    </div>
  );
}
