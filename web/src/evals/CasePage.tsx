import { Anchor, Text } from "@mantine/core";
import { IconChevronLeft } from "@tabler/icons-react";
import { Link, useParams } from "react-router";
import { useEvalCase } from "../api/queries";
import type { EvalCase } from "../api/types";
import { usePageTitle } from "../app/usePageTitle";
import { formatCount, formatLatency } from "../format/units";
import { text } from "../session/model/loose";
import { ErrorBox } from "../ui/ErrorBox";
import { PageHeader } from "../ui/PageHeader";
import { StatusBadge } from "../ui/StatusBadge";
import { TableSkeleton } from "../ui/TableSkeleton";
import { CaseEvent } from "./CaseEvent";
import { judgmentName, judgmentVerdict } from "./judgments";
import classes from "./Evals.module.css";

export function CasePage() {
  const { runId = "", caseId = "" } = useParams();
  const found = useEvalCase(runId, caseId);
  usePageTitle(found.data?.name ?? "Eval case");
  if (found.isError) return <ErrorBox title="The case could not be read" error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <TableSkeleton rows={8} />;
  const evalCase = found.data;
  const events = evalCase.events ?? [];
  const judgeOverruled = evalCase.status === "passed" && evalCase.judge_failed;
  return (
    <>
      <Anchor component={Link} to={`/evals/${runId}`} size="sm" className={classes.back}>
        <IconChevronLeft size={14} aria-hidden /> Run
      </Anchor>
      <PageHeader
        title={evalCase.name}
        note={
          <>
            <StatusBadge word={evalCase.status} /> {judgeOverruled && "counts as failed: a judge said fail"}
          </>
        }
      />
      <div className={classes.facts}>
        {evalCase.file && <span className="mono">{evalCase.file}</span>}
        <span>{formatLatency(evalCase.duration_ms)}</span>
        <span>TTFT p95 {formatLatency(evalCase.ttft_p95_ms)}</span>
        <span>{formatCount(evalCase.total_tokens)} tokens</span>
      </div>
      <div className={classes.columns}>
        <section className={`panel ${classes.section}`} aria-label="Transcript">
          <h2 className={classes.heading}>Transcript</h2>
          {events.length === 0 ? (
            <Text size="sm" c="dimmed" className={classes.pad}>
              {evalCase.user_input ? `The plugin captured no events. Input: ${evalCase.user_input}` : "The plugin captured no events for this case."}
            </Text>
          ) : (
            events.map((event, index) => <CaseEvent key={index} event={event} />)
          )}
        </section>
        <div>
          <Failure evalCase={evalCase} />
          <Judgments evalCase={evalCase} />
        </div>
      </div>
    </>
  );
}

function Failure({ evalCase }: { evalCase: EvalCase }) {
  const { failure } = evalCase;
  if (!failure) return null;
  const stack = text(failure.stack);
  return (
    <section className={`panel ${classes.section}`}>
      <h2 className={classes.heading}>Failure{text(failure.kind) && `: ${text(failure.kind)}`}</h2>
      <p className={`${classes.failure} ${classes.pad}`}>{text(failure.message) ?? "No message was sent."}</p>
      {stack && (
        <pre className={classes.stack} tabIndex={0} aria-label="Stack">
          {stack}
        </pre>
      )}
    </section>
  );
}

function Judgments({ evalCase }: { evalCase: EvalCase }) {
  return (
    <section className={`panel ${classes.section}`}>
      <h2 className={classes.heading}>Judges</h2>
      {evalCase.judgments.length === 0 && (
        <Text size="sm" c="dimmed" className={classes.pad}>
          No judge looked at this case.
        </Text>
      )}
      {evalCase.judgments.map((judgment, index) => (
        <div key={index} className={classes.event}>
          <div className={classes.eventWho}>
            <StatusBadge word={judgmentVerdict(judgment)} />
            <span>{judgmentName(judgment)}</span>
          </div>
          {text(judgment.reasoning) && <p className={classes.eventText}>{text(judgment.reasoning)}</p>}
        </div>
      ))}
    </section>
  );
}
