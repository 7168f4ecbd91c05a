import { SegmentedControl, Skeleton } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useSearchParams } from "react-router";
import { useWebhookStats } from "../api/alertQueries";
import { formatCount, formatLatency, formatRate } from "../format/units";
import { ErrorBox } from "../ui/ErrorBox";
import { StatGrid } from "../ui/StatGrid";
import classes from "./Alerts.module.css";

const DeliveryChart = lazy(async () => ({ default: (await import("./DeliveryChart")).DeliveryChart }));

const ranges = [
  { value: "24h", label: "24 h" },
  { value: "7d", label: "7 d" },
  { value: "30d", label: "30 d" },
];

export function DeliveryStats() {
  const [params, setParams] = useSearchParams();
  const wanted = params.get("range");
  const range = ranges.some(({ value }) => value === wanted) ? wanted! : "7d";
  const stats = useWebhookStats(range);
  return (
    <section className={`panel ${classes.section}`} aria-labelledby="deliveries">
      <div className={classes.sectionHead}>
        <h2 id="deliveries">Deliveries</h2>
        <SegmentedControl
          size="xs"
          aria-label="Range"
          data={ranges}
          value={range}
          onChange={(value) => setParams({ range: value }, { replace: true, preventScrollReset: true })}
        />
      </div>
      {stats.isError && <ErrorBox title="The statistics could not be read" error={stats.error} onRetry={() => void stats.refetch()} />}
      {stats.isPending && <Skeleton height={140} m="md" />}
      {stats.data && (
        <div className={classes.stats}>
          <StatGrid
            stats={[
              { label: "Attempts", value: formatCount(stats.data.total_attempts) },
              { label: "Accepted", value: formatRate(stats.data.acceptance_rate), note: `${formatCount(stats.data.accepted)} with a 2xx answer` },
              { label: "Answer time", value: formatLatency(stats.data.avg_duration_ms), note: "on average" },
            ]}
          />
          <Suspense fallback={<Skeleton height={120} />}>
            <DeliveryChart stats={stats.data} />
          </Suspense>
        </div>
      )}
    </section>
  );
}
