import { Checkbox, Table, VisuallyHidden } from "@mantine/core";
import { Link } from "react-router";
import type { EvalRun } from "../api/types";
import { formatCount, formatDuration, formatLatency, MISSING } from "../format/units";
import { StatusBadge } from "../ui/StatusBadge";
import { TimeText } from "../ui/TimeText";
import { CILink } from "./CILink";
import { PassRate } from "./PassRate";
import { runName } from "./runName";
import classes from "./Evals.module.css";

interface RunTableProps {
  runs: EvalRun[];
  chosen: string[];
  onChoose: (runId: string, on: boolean) => void;
}

export function RunTable({ runs, chosen, onChoose }: RunTableProps) {
  return (
    <div className={`panel ${classes.box}`}>
      <Table.ScrollContainer type="native" minWidth={980}>
        <Table highlightOnHover className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={36}>
                <VisuallyHidden>Compare</VisuallyHidden>
              </Table.Th>
              <Table.Th>Started</Table.Th>
              <Table.Th>Run</Table.Th>
              <Table.Th>Status</Table.Th>
              <Table.Th>Pass rate</Table.Th>
              <Table.Th className={classes.right}>Passed</Table.Th>
              <Table.Th className={classes.right}>Failed</Table.Th>
              <Table.Th className={classes.right}>Errored</Table.Th>
              <Table.Th className={classes.right}>Skipped</Table.Th>
              <Table.Th className={classes.right}>TTFT p95</Table.Th>
              <Table.Th className={classes.right}>Duration</Table.Th>
              <Table.Th>CI</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {runs.map((run) => (
              <Table.Tr key={run.run_id}>
                <Table.Td>
                  <Checkbox
                    size="xs"
                    aria-label={`Compare the run ${runName(run)}`}
                    checked={chosen.includes(run.run_id)}
                    onChange={(event) => onChoose(run.run_id, event.currentTarget.checked)}
                  />
                </Table.Td>
                <Table.Td>
                  <TimeText iso={run.started_at} />
                </Table.Td>
                <Table.Td className={classes.name}>
                  <Link to={`/evals/${run.run_id}`} className={classes.link}>
                    {runName(run)}
                  </Link>
                  <span className={classes.sub}>{run.testing_framework}</span>
                </Table.Td>
                <Table.Td>
                  <StatusBadge word={run.status} />
                </Table.Td>
                <Table.Td>
                  <PassRate rate={run.pass_rate} />
                </Table.Td>
                <Table.Td className={classes.right}>{formatCount(run.passed)}</Table.Td>
                <Table.Td className={classes.right} data-bad={run.failed > 0 || undefined}>
                  {formatCount(run.failed)}
                </Table.Td>
                <Table.Td className={classes.right} data-bad={run.errored > 0 || undefined}>
                  {formatCount(run.errored)}
                </Table.Td>
                <Table.Td className={classes.right}>{formatCount(run.skipped)}</Table.Td>
                <Table.Td className={classes.right}>{formatLatency(run.ttft_p95_ms)}</Table.Td>
                <Table.Td className={classes.right}>{run.finished_at ? formatDuration(run.duration_ms) : MISSING}</Table.Td>
                <Table.Td>
                  <CILink ci={run.ci} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </div>
  );
}
