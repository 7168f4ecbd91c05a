import { SegmentedControl, Skeleton, Text } from "@mantine/core";
import { lazy, Suspense, useMemo, useState } from "react";
import { useRulePreview, type RuleInput } from "../api/alertQueries";
import { formatLocal } from "../format/time";
import { plural } from "../format/units";
import { formatMetric } from "./metrics";
import classes from "./Alerts.module.css";

const PreviewChart = lazy(async () => ({ default: (await import("./PreviewChart")).PreviewChart }));

const ranges = [
  { value: "24", label: "24 h" },
  { value: "72", label: "3 d" },
  { value: "168", label: "7 d" },
  { value: "336", label: "14 d" },
];

/** What the rule measures. Its name and where it sends to do not matter for that. */
function measured(rule: RuleInput): RuleInput | null {
  const { metric, threshold_value, window_minutes, min_samples, agent_id, account_id, judge_name, eval_source } = rule;
  if (!metric || !threshold_value || !window_minutes) return null;
  return {
    metric,
    threshold_value,
    window_minutes,
    min_samples: min_samples || 1,
    agent_id: agent_id || null,
    account_id: account_id || null,
    judge_name: judge_name || null,
    ...(eval_source ? { eval_source } : {}),
  };
}

/** The rule over the calls that are stored: its values, its threshold, and when it would have fired. */
export function RulePreviewPanel({ rule }: { rule: RuleInput }) {
  const [hours, setHours] = useState("24");
  // To the minute: the question stays the same while somebody types, so the answer can be kept.
  const from = useMemo(() => new Date(Math.floor(Date.now() / 60_000) * 60_000 - Number(hours) * 3_600_000).toISOString(), [hours]);
  const asked = measured(rule);
  const preview = useRulePreview(asked, from);
  const fired = preview.data?.fired_at ?? [];
  return (
    <section className={`panel ${classes.section} ${classes.preview}`} aria-label="Preview">
      <div className={classes.sectionHead}>
        <h2>What it would have seen</h2>
        <SegmentedControl size="xs" aria-label="Range" data={ranges} value={hours} onChange={setHours} />
      </div>
      <div className={classes.pad}>
        {asked === null && (
          <Text size="sm" c="dimmed">
            Choose a metric, a threshold and a window to see recent values.
          </Text>
        )}
        {asked !== null && preview.isError && (
          <Text size="sm" c="dimmed" role="status">
            No preview: {preview.error.message}
          </Text>
        )}
        {asked !== null && preview.isPending && <Skeleton height={260} />}
        {asked !== null && preview.data && !preview.isError && (
          <>
            <Text size="sm" mb="xs" role="status" data-testid="preview-summary">
              {fired.length === 0
                ? "It would not have fired."
                : `It would have fired ${plural(fired.length, "time")}, last at ${formatLocal(fired.at(-1), false)}.`}{" "}
              {preview.data.points.every((point) => point.value === null) && "Nothing was observed in this range."}
            </Text>
            <Suspense fallback={<Skeleton height={240} />}>
              <PreviewChart
                preview={preview.data}
                threshold={asked.threshold_value ?? 0}
                format={(value) => formatMetric(asked.metric ?? "", value)}
              />
            </Suspense>
          </>
        )}
      </div>
    </section>
  );
}
