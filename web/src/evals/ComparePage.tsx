import { Anchor, Group, Select, Text } from "@mantine/core";
import { IconArrowRight, IconChevronLeft } from "@tabler/icons-react";
import { Link, useSearchParams } from "react-router";
import { useEvalComparison, useEvalRuns } from "../api/queries";
import type { Change, ComparedCase, EvalRun } from "../api/types";
import { usePageTitle } from "../app/usePageTitle";
import { formatLocal } from "../format/time";
import { formatCount, formatLatency, formatRate, MISSING } from "../format/units";
import { ErrorBox } from "../ui/ErrorBox";
import { PageHeader } from "../ui/PageHeader";
import { StatGrid } from "../ui/StatGrid";
import { StatusBadge } from "../ui/StatusBadge";
import { TableSkeleton } from "../ui/TableSkeleton";
import { runName } from "./runName";
import classes from "./Evals.module.css";

/** What changed from one run to another. Without a base the run before the head is taken. */
export function ComparePage() {
  usePageTitle("Compare runs");
  const [params, setParams] = useSearchParams();
  const runs = useEvalRuns({ limit: "20" });
  const recent = runs.data?.objects ?? [];
  const head = params.get("head") ?? recent[0]?.run_id ?? "";
  const base = params.get("base") ?? runBefore(recent, head);
  const comparison = useEvalComparison(base, head);
  const options = withChosen(recent, [base, head]);
  const set = (name: "base" | "head", value: string | null) =>
    setParams({ base, head, [name]: value ?? "" }, { replace: true });

  return (
    <>
      <Anchor component={Link} to="/evals" size="sm" className={classes.back}>
        <IconChevronLeft size={14} aria-hidden /> Evals
      </Anchor>
      <PageHeader title="Compare runs" />
      <Group mb="md" align="flex-end" wrap="wrap">
        <Select label="From" data={options} value={base} onChange={(value) => set("base", value)} w={320} searchable />
        <IconArrowRight size={18} stroke={1.6} aria-hidden style={{ marginBottom: 9 }} />
        <Select label="To" data={options} value={head} onChange={(value) => set("head", value)} w={320} searchable />
      </Group>
      {base === head && base !== "" && <Text c="dimmed">These are the same run: choose another one.</Text>}
      {runs.data && recent.length < 2 && <Text c="dimmed">There is only one run so far: nothing to compare with.</Text>}
      {comparison.isError && (
        <ErrorBox title="The runs could not be compared" error={comparison.error} onRetry={() => void comparison.refetch()} />
      )}
      {comparison.isLoading && <TableSkeleton rows={5} />}
      {comparison.data && (
        <>
          <div className={`panel ${classes.section} ${classes.pad}`}>
            <StatGrid
              stats={[
                change("Pass rate", comparison.data.pass_rate, formatRate),
                change("TTFT p50", comparison.data.ttft_p50_ms, formatLatency),
                change("TTFT p95", comparison.data.ttft_p95_ms, formatLatency),
                { label: "Unchanged cases", value: formatCount(comparison.data.unchanged) },
              ]}
            />
          </div>
          <CaseList title="Newly failing" cases={comparison.data.newly_failing} base={base} head={head} none="No case got worse." />
          <CaseList title="Newly passing" cases={comparison.data.newly_passing} base={base} head={head} none="No case got better." />
          <CaseList title="Still failing" cases={comparison.data.still_failing} base={base} head={head} />
          <CaseList title="Added" cases={comparison.data.added} base={base} head={head} />
          <CaseList title="Removed" cases={comparison.data.removed} base={base} head={head} />
        </>
      )}
    </>
  );
}

/** The run before it of the same suite; any earlier one when there is none. */
function runBefore(runs: EvalRun[], headId: string): string {
  const at = runs.findIndex((run) => run.run_id === headId);
  const head = runs[at];
  const earlier = runs.slice(at + 1);
  const same = earlier.find((run) => run.testing_framework === head?.testing_framework && run.name === head.name);
  return (same ?? earlier[0])?.run_id ?? "";
}

function withChosen(runs: EvalRun[], chosen: string[]) {
  const options = runs.map((run) => ({ value: run.run_id, label: `${runName(run)}, ${formatLocal(run.started_at, false)}` }));
  for (const runId of chosen) {
    if (runId && !options.some((option) => option.value === runId)) options.push({ value: runId, label: runId });
  }
  return options;
}

function change(label: string, { base, head }: Change, format: (value: number | null) => string) {
  return { label, value: format(head), note: `was ${format(base)}` };
}

function CaseList({ title, cases, base, head, none }: { title: string; cases: ComparedCase[]; base: string; head: string; none?: string }) {
  if (cases.length === 0 && !none) return null;
  return (
    <section className={`panel ${classes.section}`}>
      <h2 className={classes.heading}>
        {title} ({formatCount(cases.length)})
      </h2>
      {cases.length === 0 && (
        <Text size="sm" c="dimmed" className={classes.pad}>
          {none}
        </Text>
      )}
      {cases.map((each, index) => (
        <div key={index} className={classes.compareRow}>
          <span>
            {each.name} {each.file && <span className={`mono ${classes.caseFile}`}>{each.file}</span>}
          </span>
          <CaseStatus runId={base} caseId={each.base_case_id} status={each.base_status} />
          <IconArrowRight size={14} stroke={1.6} aria-label="became" role="img" />
          <CaseStatus runId={head} caseId={each.head_case_id} status={each.head_status} />
        </div>
      ))}
    </section>
  );
}

function CaseStatus({ runId, caseId, status }: { runId: string; caseId: string | null; status: string | null }) {
  if (!caseId || !status) return <span>{MISSING}</span>;
  return (
    <Link to={`/evals/${runId}/cases/${caseId}`}>
      <StatusBadge word={status} />
    </Link>
  );
}
