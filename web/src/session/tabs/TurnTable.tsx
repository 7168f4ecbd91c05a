import { Table } from "@mantine/core";
import { useState } from "react";
import { Link, useLocation } from "react-router";
import type { Turn } from "../../api/types";
import { formatDuration, formatLatency, plural, SLOW_REPLY_MS } from "../../format/units";
import { StatusBadge } from "../../ui/StatusBadge";
import classes from "./Tabs.module.css";

/** More rows than this are asked for explicitly: nobody reads 500 rows, and the page stays quick. */
const shownAtFirst = 50;

/** The same numbers as the timeline, for reading, copying and for screen readers. */
export function TurnTable({ turns }: { turns: Turn[] }) {
  const [all, setAll] = useState(false);
  const location = useLocation();
  const shown = all ? turns : turns.slice(0, shownAtFirst);
  return (
    <>
      <Table.ScrollContainer type="native" minWidth={760}>
        <Table className={classes.numbers}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Turn</Table.Th>
              <Table.Th>Reply time</Table.Th>
              <Table.Th>End-of-turn wait</Table.Th>
              <Table.Th>Transcription</Table.Th>
              <Table.Th>Hook</Table.Th>
              <Table.Th>LLM first token</Table.Th>
              <Table.Th>TTS first byte</Table.Th>
              <Table.Th>Caller spoke</Table.Th>
              <Table.Th>Agent spoke</Table.Th>
              <Table.Th className={classes.words}>Notes</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {shown.map((turn) => (
              <Table.Tr key={turn.turn_number}>
                <Table.Td>
                  <Link to={{ search: location.search, hash: `#turn-${turn.turn_number}` }} replace preventScrollReset className={classes.link}>
                    {turn.turn_number}
                  </Link>
                </Table.Td>
                <Table.Td>{formatLatency(turn.user_perceived_ms)}</Table.Td>
                <Table.Td>{formatLatency(turn.turn_decision_ms)}</Table.Td>
                <Table.Td>{formatLatency(turn.stt_delay_ms)}</Table.Td>
                <Table.Td>{formatLatency(turn.hook_delay_ms)}</Table.Td>
                <Table.Td>{formatLatency(turn.llm_ttft_ms)}</Table.Td>
                <Table.Td>{formatLatency(turn.tts_ttfb_ms)}</Table.Td>
                <Table.Td>{formatDuration(turn.user_speech_ms)}</Table.Td>
                <Table.Td>{formatDuration(turn.agent_speech_ms)}</Table.Td>
                <Table.Td className={classes.words}>
                  <span className={classes.notes}>
                    {(turn.user_perceived_ms ?? 0) > SLOW_REPLY_MS && <StatusBadge word="slow" tone="warn" />}
                    {turn.interrupted && <StatusBadge word="interrupted" tone="warn" />}
                    {turn.tool_calls.some((call) => call.is_error) && <StatusBadge word="tool error" tone="bad" />}
                    {turn.agent_text === null && <StatusBadge word="no reply" tone="quiet" />}
                  </span>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {!all && turns.length > shownAtFirst && (
        <button type="button" className={classes.more} onClick={() => setAll(true)}>
          Show all {plural(turns.length, "turn")}
        </button>
      )}
    </>
  );
}
