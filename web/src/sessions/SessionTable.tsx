import { Table, VisuallyHidden } from "@mantine/core";
import { IconBolt, IconGavel, IconMicrophone } from "@tabler/icons-react";
import { useEffect, useRef } from "react";
import { Link, useNavigate } from "react-router";
import type { SessionRow } from "../api/types";
import { formatCount, formatDuration, MISSING } from "../format/units";
import { StatusBadge } from "../ui/StatusBadge";
import { TimeText } from "../ui/TimeText";
import { LatencyBar } from "./LatencyBar";
import { Snippet } from "./Snippet";
import classes from "./SessionTable.module.css";

interface SessionTableProps {
  rows: SessionRow[];
  selectedId: string | null;
  stale: boolean;
}

export function SessionTable({ rows, selectedId, stale }: SessionTableProps) {
  return (
    <Table.ScrollContainer type="native" minWidth={0} className={`panel ${classes.box}`}>
      <Table highlightOnHover className={classes.table} data-stale={stale || undefined}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Started</Table.Th>
            <Table.Th className={classes.right}>Duration</Table.Th>
            <Table.Th>Agent</Table.Th>
            <Table.Th className={classes.wide}>Account</Table.Th>
            <Table.Th className={classes.right}>Turns</Table.Th>
            <Table.Th>Reply p95</Table.Th>
            <Table.Th className={classes.right}>
              <abbr title="Interruptions">Interr.</abbr>
            </Table.Th>
            <Table.Th className={classes.right}>
              <abbr title="Judges that failed the call, of all that judged it">Judges</abbr>
            </Table.Th>
            <Table.Th>Outcome</Table.Th>
            <Table.Th className={classes.wide}>
              <VisuallyHidden>Recording</VisuallyHidden>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <SessionTableRow key={row.id} row={row} selected={row.id === selectedId} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function SessionTableRow({ row, selected }: { row: SessionRow; selected: boolean }) {
  const navigate = useNavigate();
  const element = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (selected) element.current?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  const address = `/sessions/${encodeURIComponent(row.id)}`;
  const judged = row.eval_pass_count + row.eval_fail_count;
  return (
    <Table.Tr
      ref={element}
      className={classes.row}
      data-selected={selected || undefined}
      aria-selected={selected || undefined}
      // A click anywhere opens the call; the link in the row is there for keyboards, new tabs and screen readers.
      onClick={(event) => {
        if (!(event.target instanceof HTMLElement && event.target.closest("a")) && !window.getSelection()?.toString()) {
          void navigate(address);
        }
      }}
    >
      <Table.Td data-label="Started">
        <Link to={address} className={classes.link}>
          <TimeText iso={row.started_at} />
        </Link>
        {row.match_snippet && <Snippet markedText={row.match_snippet} />}
      </Table.Td>
      <Table.Td className={classes.right} data-label="Duration">
        {row.state === "active" ? <StatusBadge word="active" /> : formatDuration(row.duration_ms)}
      </Table.Td>
      <Table.Td className={classes.agent} data-label="Agent">
        {row.agent_name ?? row.agent_id ?? MISSING}
        {row.transport && <span className={classes.transport}>{row.transport}</span>}
      </Table.Td>
      <Table.Td className={`${classes.wide} ${classes.agent}`}>{row.account_id ?? MISSING}</Table.Td>
      <Table.Td className={classes.right} data-label="Turns">
        {formatCount(row.turn_count)}
      </Table.Td>
      <Table.Td data-label="Reply p95">
        <LatencyBar ms={row.p95_user_perceived_ms} />
      </Table.Td>
      <Table.Td className={classes.right} data-label="Interruptions">
        <span className={classes.sign} data-warn={row.interruption_count > 0 || undefined}>
          {row.interruption_count > 0 && <IconBolt size={13} stroke={2} aria-hidden />}
          {formatCount(row.interruption_count)}
        </span>
      </Table.Td>
      <Table.Td className={classes.right} data-label="Judges">
        {judged === 0 ? (
          MISSING
        ) : (
          <span className={classes.sign} data-bad={row.eval_fail_count > 0 || undefined}>
            {row.eval_fail_count > 0 && <IconGavel size={13} stroke={2} aria-hidden />}
            {row.eval_fail_count > 0 ? `${row.eval_fail_count} of ${judged} failed` : `${judged} passed`}
          </span>
        )}
      </Table.Td>
      <Table.Td data-label="Outcome">{row.outcome ? <StatusBadge word={row.outcome} /> : MISSING}</Table.Td>
      <Table.Td className={classes.wide}>
        {row.record_url && <IconMicrophone size={15} stroke={1.6} color="var(--st-dim)" aria-label="With recording" role="img" />}
      </Table.Td>
    </Table.Tr>
  );
}
