import { Select, Table, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import type { SessionDetail } from "../../api/types";
import { parseTime } from "../../format/time";
import { formatClock, formatCount, MISSING, plural } from "../../format/units";
import { brief, epochMS, text } from "../model/loose";
import classes from "./Tabs.module.css";

const shownAtOnce = 200;

/** Everything the SDK reported as an event, of types known and unknown, with what each carries. */
export function EventsTab({ session }: { session: SessionDetail }) {
  const [type, setType] = useState<string | null>(null);
  const [limit, setLimit] = useState(shownAtOnce);
  const events = session.events ?? [];
  const types = useMemo(() => [...new Set(events.map((event) => text(event.type) ?? "no type"))].toSorted(), [events]);
  const matching = events.filter((event) => type === null || (text(event.type) ?? "no type") === type);
  const startMS = parseTime(session.started_at);
  if (events.length === 0) {
    return (
      <Text c="dimmed" size="sm">
        No events were sent for this session.
      </Text>
    );
  }
  return (
    <>
      <div className={classes.filters}>
        <Select size="xs" label="Type" placeholder="All types" data={types} value={type} onChange={setType} clearable searchable />
        <Text size="sm" c="dimmed" className="num">
          {formatCount(matching.length)} of {plural(events.length, "event")}
        </Text>
      </div>
      <Table.ScrollContainer type="native" minWidth={520}>
        <Table layout="fixed">
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={84}>At</Table.Th>
              <Table.Th w={230}>Type</Table.Th>
              <Table.Th>Content</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {matching.slice(0, limit).map((event, index) => {
              const ms = epochMS(event.created_at);
              const { type: _type, created_at: _createdAt, ...rest } = event;
              return (
                <Table.Tr key={index}>
                  <Table.Td className="num">{ms === null || startMS === null ? MISSING : formatClock((ms - startMS) / 1000, 1)}</Table.Td>
                  <Table.Td className="mono">{text(event.type) ?? "no type"}</Table.Td>
                  <Table.Td className={classes.logBody}>
                    <details className={classes.logMore}>
                      <summary className="mono">{brief(rest, 140)}</summary>
                      <pre className="mono">{JSON.stringify(rest, null, 2)}</pre>
                    </details>
                  </Table.Td>
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {matching.length > limit && (
        <button type="button" className={classes.more} onClick={() => setLimit(limit + shownAtOnce)}>
          Show {formatCount(Math.min(shownAtOnce, matching.length - limit))} more
        </button>
      )}
    </>
  );
}
