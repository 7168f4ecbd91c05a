import { Anchor, Group, Title, Tooltip } from "@mantine/core";
import { IconChevronLeft } from "@tabler/icons-react";
import { Link } from "react-router";
import type { SessionDetail } from "../api/types";
import { formatCost, formatDuration, formatLatency, plural, SLOW_REPLY_MS } from "../format/units";
import { CopyText } from "../ui/CopyText";
import { StatusBadge } from "../ui/StatusBadge";
import { TimeText } from "../ui/TimeText";
import { DeleteSessionButton } from "./DeleteSessionButton";
import { JudgeVerdict } from "./JudgeVerdict";
import type { Timeline } from "./model/timeline";
import classes from "./SessionHeader.module.css";

/** Who, when, how long, how it ended, what the judges said, and what went wrong in words. */
export function SessionHeader({ session, timeline }: { session: SessionDetail; timeline: Timeline }) {
  const { summary, turns } = session.session_metrics;
  const slow = timeline.replies.filter((reply) => reply.slow).length;
  const failedTools = session.session_metrics.tool_calls.filter((call) => call.is_error).length;
  return (
    <header className={classes.header}>
      <Anchor component={Link} to="/sessions" size="sm" className={classes.back}>
        <IconChevronLeft size={14} aria-hidden /> Sessions
      </Anchor>
      <div className={classes.top}>
        <Title order={1} size="h3" className={classes.title}>
          {session.agent_name ?? session.agent_id ?? "Session"}
        </Title>
        {session.state === "active" && <StatusBadge word="active" />}
        {session.outcome && <StatusBadge word={session.outcome.outcome} />}
        {session.incomplete.length > 0 && (
          <Tooltip label={`Not everything has arrived: ${session.incomplete.join("; ")}`}>
            <span tabIndex={0}>
              <StatusBadge word="incomplete" tone="quiet" />
            </span>
          </Tooltip>
        )}
        <Group gap={2} wrap="nowrap" className={classes.id}>
          <span className="mono">{session.id}</span>
          <CopyText value={session.id} label="Copy the session id" />
        </Group>
        <div className={classes.actions}>
          <DeleteSessionButton id={session.id} />
        </div>
      </div>
      <div className={classes.facts}>
        <TimeText iso={session.started_at} />
        <span className="num">{session.duration_ms === null ? `${formatDuration(timeline.duration * 1000)} so far` : formatDuration(session.duration_ms)}</span>
        {session.transport && <span>{session.transport}</span>}
        {session.account_id && <span>account {session.account_id}</span>}
        <span className="num">{plural(Math.max(session.turn_count, turns.length), "turn")}</span>
        {summary.p95_user_perceived_ms !== undefined && (
          <span className="num">reply p95 {formatLatency(summary.p95_user_perceived_ms)}</span>
        )}
        {session.estimated_cost_usd !== null && <span className="num">{formatCost(session.estimated_cost_usd)}</span>}
        <Findings slow={slow} interruptions={timeline.marks.filter((mark) => mark.kind === "interruption").length} failedTools={failedTools} />
      </div>
      <div className={classes.facts}>
        {session.outcome?.reason && <span className={classes.reason}>{session.outcome.reason}</span>}
        {session.evaluations.length > 0 && (
          <ul className={classes.judges} aria-label="Judges">
            {session.evaluations.map((evaluation, index) => (
              <li key={`${evaluation.judge_name}-${index}`}>
                <JudgeVerdict evaluation={evaluation} />
              </li>
            ))}
          </ul>
        )}
      </div>
    </header>
  );
}

function Findings({ slow, interruptions, failedTools }: { slow: number; interruptions: number; failedTools: number }) {
  return (
    <>
      {slow > 0 && (
        <Tooltip label={`Replies that took longer than ${SLOW_REPLY_MS / 1000} s`}>
          <span tabIndex={0}>
            <StatusBadge word={plural(slow, "slow reply", "slow replies")} tone="warn" />
          </span>
        </Tooltip>
      )}
      {interruptions > 0 && <StatusBadge word={plural(interruptions, "interruption")} tone="warn" />}
      {failedTools > 0 && <StatusBadge word={plural(failedTools, "failed tool call")} tone="bad" />}
    </>
  );
}
