import { Button, Table, Text } from "@mantine/core";
import { Fragment, useState } from "react";
import { Link } from "react-router";
import { useFirings, useRedeliver, useWebhookAttempts } from "../api/alertQueries";
import type { AlertRule, Firing } from "../api/types";
import { formatAgo } from "../format/time";
import { formatCount } from "../format/units";
import { ErrorBox } from "../ui/ErrorBox";
import { Pager } from "../ui/Pager";
import { StatusBadge } from "../ui/StatusBadge";
import { TableSkeleton } from "../ui/TableSkeleton";
import { TimeText } from "../ui/TimeText";
import { useNow } from "../ui/useNow";
import { AttemptTable } from "./AttemptTable";
import { formatMetric } from "./metrics";
import classes from "./Alerts.module.css";

export function Firings({ rule }: { rule: AlertRule }) {
  const [offset, setOffset] = useState(0);
  const [open, setOpen] = useState<string | null>(null);
  const firings = useFirings(rule.id, offset);
  return (
    <section className={`panel ${classes.section}`} aria-labelledby="firings">
      <div className={classes.sectionHead}>
        <h2 id="firings">Firings{firings.data && ` (${formatCount(firings.data.meta.total_count)})`}</h2>
      </div>
      {firings.isError && <ErrorBox title="The firings could not be read" error={firings.error} onRetry={() => void firings.refetch()} />}
      {firings.isPending && <TableSkeleton rows={3} />}
      {firings.data?.objects.length === 0 && (
        <Text size="sm" c="dimmed" className={classes.pad}>
          This rule has not fired yet.
        </Text>
      )}
      {firings.data && firings.data.objects.length > 0 && (
        <Table.ScrollContainer type="native" minWidth={820}>
          <Table className={`${classes.table} ${classes.firings}`}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Fired</Table.Th>
                <Table.Th className={classes.right}>Value</Table.Th>
                <Table.Th className={classes.right}>Observations</Table.Th>
                <Table.Th>Delivery</Table.Th>
                <Table.Th>Failing calls</Table.Th>
                <Table.Th />
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {firings.data.objects.map((firing) => (
                <Fragment key={firing.id}>
                  <FiringRow firing={firing} rule={rule} open={open === firing.id} onToggle={() => setOpen(open === firing.id ? null : firing.id)} />
                  {open === firing.id && (
                    <Table.Tr>
                      <Table.Td colSpan={6}>
                        <FiringAttempts firing={firing} />
                      </Table.Td>
                    </Table.Tr>
                  )}
                </Fragment>
              ))}
            </Table.Tbody>
          </Table>
          <Pager meta={firings.data.meta} onOffset={setOffset} />
        </Table.ScrollContainer>
      )}
    </section>
  );
}

function FiringRow({ firing, rule, open, onToggle }: { firing: Firing; rule: AlertRule; open: boolean; onToggle: () => void }) {
  const now = useNow(5_000);
  const counted = firing.total_count === null ? formatCount(firing.matched_count) : `${formatCount(firing.matched_count)} of ${formatCount(firing.total_count)}`;
  return (
    <Table.Tr>
      <Table.Td>
        <TimeText iso={firing.created_at} />
      </Table.Td>
      <Table.Td className={classes.right}>{formatMetric(rule.metric, firing.observed_value)}</Table.Td>
      <Table.Td className={classes.right}>{counted}</Table.Td>
      <Table.Td>
        <StatusBadge word={firing.status} />
        {firing.status === "pending" && firing.next_attempt_at && (
          <div className={classes.detail}>next attempt {formatAgo(firing.next_attempt_at, now)}</div>
        )}
        {firing.last_error && <div className={classes.detail}>{firing.last_error}</div>}
      </Table.Td>
      <Table.Td>
        {firing.sample_session_ids.length === 0 ? (
          <span className={classes.detail}>none recorded</span>
        ) : (
          <span className={classes.samples}>
            {firing.sample_session_ids.map((session) => (
              <Link key={session} to={`/sessions/${encodeURIComponent(session)}`} className="mono">
                {session}
              </Link>
            ))}
          </span>
        )}
      </Table.Td>
      <Table.Td className={classes.right}>
        <Button size="compact-xs" variant="default" aria-expanded={open} onClick={onToggle}>
          {open ? "Hide attempts" : `Attempts (${firing.attempt_count})`}
        </Button>
      </Table.Td>
    </Table.Tr>
  );
}

function FiringAttempts({ firing }: { firing: Firing }) {
  const attempts = useWebhookAttempts({ firing_id: firing.id, limit: "100" });
  const redeliver = useRedeliver();
  return (
    <>
      {attempts.isError && <ErrorBox title="The attempts could not be read" error={attempts.error} onRetry={() => void attempts.refetch()} />}
      {attempts.data?.objects.length === 0 && <Text size="sm">No attempt has been made yet.</Text>}
      {attempts.data && attempts.data.objects.length > 0 && <AttemptTable attempts={attempts.data.objects} withRule={false} />}
      {firing.status !== "pending" && (
        <Button size="xs" variant="default" mt="xs" loading={redeliver.isPending} onClick={() => redeliver.mutate(firing.id)}>
          Deliver again
        </Button>
      )}
      {redeliver.isError && (
        <Text size="sm" c="var(--st-bad)" role="alert">
          {redeliver.error.message}
        </Text>
      )}
    </>
  );
}
