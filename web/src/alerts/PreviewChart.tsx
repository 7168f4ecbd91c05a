import "@mantine/charts/styles.css";
import { AreaChart } from "@mantine/charts";
import { ReferenceDot } from "recharts";
import type { RulePreview } from "../api/types";
import { formatLocal } from "../format/time";

interface PreviewChartProps {
  preview: RulePreview;
  threshold: number;
  format: (value: number) => string;
}

/** The metric over time with the threshold as a line; each would-be firing is a dot on the line. */
export function PreviewChart({ preview, threshold, format }: PreviewChartProps) {
  const data = preview.points.map((point) => ({ at: point.at, value: point.value }));
  const highest = Math.max(threshold, ...preview.points.map((point) => point.value ?? 0));
  return (
    <div aria-hidden>
      <AreaChart
        h={250}
        areaChartProps={{ accessibilityLayer: false }}
        data={data}
        dataKey="at"
        series={[{ name: "value", label: "Value", color: "var(--st-accent)" }]}
        curveType="stepAfter"
        connectNulls={false}
        withDots={false}
        withGradient={false}
        fillOpacity={0.14}
        strokeWidth={1.6}
        gridAxis="x"
        valueFormatter={format}
        yAxisProps={{ domain: [0, highest * 1.15], width: 62 }}
        xAxisProps={{ tickFormatter: (at: string) => formatLocal(at, false), minTickGap: 70 }}
        tooltipProps={{ labelFormatter: (at) => formatLocal(String(at), false) }}
        referenceLines={[{ y: threshold, label: `Threshold ${format(threshold)}`, color: "var(--st-bad)", labelPosition: "insideTopRight" }]}
      >
        {preview.fired_at.map((at) => (
          <ReferenceDot key={at} x={nearest(preview, at)} y={threshold} r={5} fill="var(--st-bad)" stroke="var(--st-panel)" strokeWidth={2} />
        ))}
      </AreaChart>
    </div>
  );
}

/** The axis has a place only for its own points. */
function nearest(preview: RulePreview, at: string): string {
  return preview.points.findLast((point) => point.at <= at)?.at ?? at;
}
