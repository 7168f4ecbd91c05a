import { formatLatency, formatRate } from "../format/units";

export interface MetricInfo {
  name: string;
  label: string;
  unit: "ms" | "fraction";
  measures: string;
}

/** What a rule can measure, in the words of a person. */
export const metrics: MetricInfo[] = [
  { name: "eval_fail_rate", label: "Judge fail rate", unit: "fraction", measures: "Share of judges' verdicts in the window that are fail" },
  { name: "outcome_fail_rate", label: "Outcome fail rate", unit: "fraction", measures: "Share of call outcomes in the window that are fail or failure" },
  { name: "interruption_rate", label: "Interruption rate", unit: "fraction", measures: "Share of the agent's turns in the window that were interrupted" },
  { name: "latency_perceived_p95", label: "Reply time p95", unit: "ms", measures: "95th percentile of what callers waited for a reply" },
  { name: "latency_llm_ttft_p95", label: "LLM first token p95", unit: "ms", measures: "95th percentile of the LLM's time to first token" },
  { name: "latency_tts_ttfb_p95", label: "TTS first byte p95", unit: "ms", measures: "95th percentile of the time to the first audio" },
  { name: "latency_stt_p95", label: "Transcription p95", unit: "ms", measures: "95th percentile of the delay of the final transcript" },
];

export function metricInfo(name: string): MetricInfo {
  return metrics.find((metric) => metric.name === name) ?? { name, label: name, unit: "ms", measures: "" };
}

/** A value of a metric with its unit: "1.96 s" or "30 %". */
export function formatMetric(name: string, value: number | null | undefined): string {
  return metricInfo(name).unit === "fraction" ? formatRate(value) : formatLatency(value);
}

/** Minutes as people say them: "15 min", "2 h", "1 d 6 h". */
export function formatWindow(minutes: number): string {
  const days = Math.floor(minutes / 1440);
  const hours = Math.floor((minutes % 1440) / 60);
  const rest = minutes % 60;
  return [days && `${days} d`, hours && `${hours} h`, rest && `${rest} min`].filter(Boolean).join(" ") || "0 min";
}
