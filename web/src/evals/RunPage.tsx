import { Anchor, Button } from "@mantine/core";
import { IconChevronLeft } from "@tabler/icons-react";
import { Link, useParams } from "react-router";
import { useEvalRun } from "../api/queries";
import type { EvalCase } from "../api/types";
import { usePageTitle } from "../app/usePageTitle";
import { formatCost, formatCount, formatDuration, formatLatency, formatRate } from "../format/units";
import { ErrorBox } from "../ui/ErrorBox";
import { PageHeader } from "../ui/PageHeader";
import { StatusBadge } from "../ui/StatusBadge";
import { TableSkeleton } from "../ui/TableSkeleton";
import { TimeText } from "../ui/TimeText";
import { CaseRow } from "./CaseRow";
import { CILink } from "./CILink";
import { runName } from "./runName";
import classes from "./Evals.module.css";

/** Trouble first. A passed case that a judge failed counts as failed. */
const groups = ["failed", "errored", "passed", "skipped"];

export function RunPage() {
  const runId = useParams().runId ?? "";
  const run = useEvalRun(runId);
  usePageTitle(run.data ? runName(run.data) : "Eval run");
  if (run.isError && !run.data) return <ErrorBox title="The run could not be read" error={run.error} onRetry={() => void run.refetch()} />;
  if (!run.data) return <TableSkeleton rows={10} />;
  const { data } = run;
  return (
    <>
      <Anchor component={Link} to="/evals" size="sm" className={classes.back}>
        <IconChevronLeft size={14} aria-hidden /> Evals
      </Anchor>
      <PageHeader title={runName(data)} note={<StatusBadge word={data.status} />}>
        <Button variant="default" component={Link} to={`/evals/compare?head=${data.run_id}`}>
          Compare with another run
        </Button>
      </PageHeader>
      <div className={classes.facts}>
        <TimeText iso={data.started_at} />
        <span>{formatDuration(data.duration_ms)}</span>
        <span>
          <b>{formatRate(data.pass_rate)}</b> passed, {formatCount(data.passed)} of {formatCount(data.total - data.skipped)}
        </span>
        <span>{[data.testing_framework, data.testing_framework_version].filter(Boolean).join(" ")}</span>
        {data.framework && <span>{[data.framework, data.framework_version].filter(Boolean).join(" ")}</span>}
        <span>TTFT p95 {formatLatency(data.ttft_p95_ms)}</span>
        <span>{formatCost(data.estimated_cost_usd)}</span>
        <CILink ci={data.ci} />
      </div>
      {data.cases.length === 0 && <div className={`panel ${classes.empty}`}>No case has finished yet.</div>}
      {groups.map((status) => (
        <CaseGroup key={status} status={status} runId={data.run_id} cases={data.cases.filter((each) => outcomeOf(each) === status)} />
      ))}
    </>
  );
}

function outcomeOf(evalCase: EvalCase): string {
  return evalCase.status === "passed" && evalCase.judge_failed ? "failed" : evalCase.status;
}

function CaseGroup({ status, runId, cases }: { status: string; runId: string; cases: EvalCase[] }) {
  if (cases.length === 0) return null;
  return (
    <section className={classes.group}>
      <h2 className={classes.groupTitle}>
        <StatusBadge word={status} /> {formatCount(cases.length)}
      </h2>
      <div className="panel">
        {cases.map((each) => (
          <CaseRow key={each.case_id} runId={runId} evalCase={each} />
        ))}
      </div>
    </section>
  );
}
