import { Table } from "@mantine/core";
import { Link } from "react-router";
import type { WebhookAttempt } from "../api/types";
import { formatLatency, MISSING } from "../format/units";
import { StatusBadge } from "../ui/StatusBadge";
import { TimeText } from "../ui/TimeText";
import classes from "./Alerts.module.css";

interface AttemptTableProps {
  attempts: WebhookAttempt[];
  /** The rule is named where attempts of several rules stand together. */
  withRule: boolean;
}

export function AttemptTable({ attempts, withRule }: AttemptTableProps) {
  return (
    <Table.ScrollContainer type="native" minWidth={withRule ? 860 : 640}>
      <Table className={classes.table}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>At</Table.Th>
            {withRule && <Table.Th>Rule</Table.Th>}
            <Table.Th>Kind</Table.Th>
            <Table.Th className={classes.right}>Attempt</Table.Th>
            <Table.Th>Result</Table.Th>
            <Table.Th className={classes.right}>Time</Table.Th>
            <Table.Th>To</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {attempts.map((attempt) => (
            <Table.Tr key={attempt.id}>
              <Table.Td>
                <TimeText iso={attempt.created_at} />
              </Table.Td>
              {withRule && (
                <Table.Td className={classes.name}>
                  <Link to={`/alerts/${attempt.rule_id}`} className={classes.link}>
                    {attempt.rule_name}
                  </Link>
                </Table.Td>
              )}
              <Table.Td>{attempt.kind}</Table.Td>
              <Table.Td className={classes.right}>{attempt.attempt_number}</Table.Td>
              <Table.Td>
                <StatusBadge word={resultWord(attempt)} tone={attempt.ok ? "good" : "bad"} />
                {attempt.error && <div className={classes.detail}>{attempt.error}</div>}
              </Table.Td>
              <Table.Td className={classes.right}>{formatLatency(attempt.duration_ms)}</Table.Td>
              <Table.Td className={`mono ${classes.url}`} title={attempt.url}>
                {attempt.http_method} {attempt.url || MISSING}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function resultWord(attempt: WebhookAttempt): string {
  if (attempt.response_status !== null) return String(attempt.response_status);
  return attempt.ok ? "ok" : "no answer";
}
