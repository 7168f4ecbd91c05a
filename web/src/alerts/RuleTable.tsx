import { Table } from "@mantine/core";
import { Link } from "react-router";
import type { AlertRule } from "../api/types";
import { MISSING } from "../format/units";
import { StatusBadge } from "../ui/StatusBadge";
import { TimeText } from "../ui/TimeText";
import { useNow } from "../ui/useNow";
import { formatMetric, formatWindow, metricInfo } from "./metrics";
import { ruleState } from "./ruleState";
import { ThresholdBar } from "./ThresholdBar";
import classes from "./Alerts.module.css";

export function RuleTable({ rules }: { rules: AlertRule[] }) {
  const now = useNow(10_000);
  return (
    <div className={`panel ${classes.box}`}>
      <Table.ScrollContainer type="native" minWidth={860}>
        <Table highlightOnHover className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Rule</Table.Th>
              <Table.Th>State</Table.Th>
              <Table.Th>Metric</Table.Th>
              <Table.Th>Last value against threshold</Table.Th>
              <Table.Th className={classes.right}>Window</Table.Th>
              <Table.Th>Scope</Table.Th>
              <Table.Th>Last fired</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rules.map((rule) => {
              const state = ruleState(rule, now);
              return (
                <Table.Tr key={rule.id}>
                  <Table.Td className={classes.name}>
                    <Link to={`/alerts/${rule.id}`} className={classes.link}>
                      {rule.name}
                    </Link>
                  </Table.Td>
                  <Table.Td>
                    <StatusBadge word={state.word} tone={state.tone} />
                    {state.tone !== "good" && <div className={classes.detail}>{state.detail}</div>}
                  </Table.Td>
                  <Table.Td>{metricInfo(rule.metric).label}</Table.Td>
                  <Table.Td>
                    <ThresholdBar value={rule.last_value} threshold={rule.threshold_value} format={(value) => formatMetric(rule.metric, value)} />
                  </Table.Td>
                  <Table.Td className={classes.right}>{formatWindow(rule.window_minutes)}</Table.Td>
                  <Table.Td className={classes.scope}>{scopeOf(rule) || "everything"}</Table.Td>
                  <Table.Td>{rule.last_fired_at ? <TimeText iso={rule.last_fired_at} /> : MISSING}</Table.Td>
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </div>
  );
}

/** What the rule is limited to, in words; "" for everything. */
export function scopeOf(rule: AlertRule): string {
  return [
    rule.agent_id && `agent ${rule.agent_id}`,
    rule.account_id && `account ${rule.account_id}`,
    rule.judge_name && `judge ${rule.judge_name}`,
  ]
    .filter(Boolean)
    .join(", ");
}
