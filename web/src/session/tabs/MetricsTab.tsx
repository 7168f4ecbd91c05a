import { Table, Text } from "@mantine/core";
import type { SessionDetail } from "../../api/types";
import { formatCost, formatCount, formatDuration, formatLatency, formatRate, MISSING } from "../../format/units";
import { StatGrid, type Stat } from "../../ui/StatGrid";
import { TurnTable } from "./TurnTable";
import classes from "./Tabs.module.css";

const stages: [string, string][] = [
  ["perceived", "Reply time"],
  ["turn_decision", "End-of-turn wait"],
  ["stt", "Transcription"],
  ["llm_ttft", "LLM first token"],
  ["tts_ttfb", "TTS first byte"],
];

export function MetricsTab({ session }: { session: SessionDetail }) {
  const { summary, turns } = session.session_metrics;
  const { voice } = summary;
  const conversation: Stat[] = [
    { label: "Interruption rate", value: formatRate(summary.interruption_rate), note: `${formatCount(summary.interruptions)} of the agent's turns` },
    { label: "Agent talks", value: formatRate(voice?.talk_ratio), note: "of all speech" },
    { label: "Silence", value: voice?.silence_pct === undefined ? MISSING : `${voice.silence_pct.toFixed(0)} %`, note: "of the call" },
    {
      label: "Dead air",
      value: voice ? formatCount(voice.dead_air.count) : MISSING,
      note: voice && voice.dead_air.count > 0 ? `longest ${formatLatency(voice.dead_air.max_ms)}` : `gaps above ${formatLatency(voice?.dead_air.threshold_ms ?? 3000)}`,
    },
    { label: "Greeting", value: formatLatency(voice?.greeting_ttfa_ms), note: "after the start" },
    { label: "Longest monologue", value: formatDuration(voice?.longest_monologue_ms), note: voice?.longest_monologue_turn ? `turn ${voice.longest_monologue_turn}` : undefined },
    { label: "Words per minute", value: `${rounded(voice?.user_wpm)} / ${rounded(voice?.agent_wpm)}`, note: "caller / agent" },
  ];
  const consumption: Stat[] = [
    { label: "Prompt tokens", value: tokens(summary.total_llm_prompt_tokens) },
    { label: "Completion tokens", value: tokens(summary.total_llm_completion_tokens) },
    { label: "TTS characters", value: tokens(summary.total_tts_characters) },
    { label: "Tool calls", value: formatCount(summary.total_tool_calls) },
    { label: "Estimated cost", value: formatCost(session.estimated_cost_usd) },
  ];
  return (
    <div className={classes.stack}>
      <div className={classes.columns}>
        <section>
          <h2 className={classes.heading}>Latency by stage</h2>
          <Table.ScrollContainer type="native" minWidth={420}>
            <Table className={classes.numbers}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Stage</Table.Th>
                  <Table.Th>p50</Table.Th>
                  <Table.Th>p90</Table.Th>
                  <Table.Th>p95</Table.Th>
                  <Table.Th>Average</Table.Th>
                  <Table.Th>Turns</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {stages.map(([key, name]) => {
                  const stage = summary.latency[key];
                  return (
                    <Table.Tr key={key}>
                      <Table.Td>{name}</Table.Td>
                      <Table.Td>{formatLatency(stage?.p50)}</Table.Td>
                      <Table.Td>{formatLatency(stage?.p90)}</Table.Td>
                      <Table.Td>{formatLatency(stage?.p95)}</Table.Td>
                      <Table.Td>{formatLatency(stage?.avg)}</Table.Td>
                      <Table.Td>{formatCount(stage?.count)}</Table.Td>
                    </Table.Tr>
                  );
                })}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </section>
        <div className={classes.stack}>
          <section>
            <h2 className={classes.heading}>Conversation</h2>
            <StatGrid stats={conversation} />
          </section>
          <section>
            <h2 className={classes.heading}>Consumption</h2>
            <StatGrid stats={consumption} />
          </section>
          <section>
            <h2 className={classes.heading}>Models</h2>
            <Text size="sm">
              {models("STT", summary.providers.stt)} · {models("LLM", summary.providers.llm)} · {models("TTS", summary.providers.tts)}
            </Text>
          </section>
        </div>
      </div>
      <section>
        <h2 className={classes.heading}>Turn by turn</h2>
        <TurnTable turns={turns} />
      </section>
    </div>
  );
}

function rounded(value: number | undefined): string {
  return value === undefined ? MISSING : String(Math.round(value));
}

/** A total of nothing measured is no zero. */
function tokens(total: number): string {
  return total > 0 ? formatCount(total) : MISSING;
}

function models(stage: string, names: string[] | null): string {
  return `${stage} ${names && names.length > 0 ? names.join(", ") : MISSING}`;
}
