import { Anchor, Text, Title } from "@mantine/core";
import { useServerStatus } from "../api/queries";
import { CopyText } from "./CopyText";
import classes from "./SetupGuide.module.css";

/** How to send data to this very server: the lines can be copied as they are. */
export function SetupGuide({ kind }: { kind: "sessions" | "evals" }) {
  const { data } = useServerStatus();
  const url = window.location.origin;
  const basic = data?.auth.basic ?? false;
  const livekit = data?.auth.livekit ?? false;
  return (
    <div className={`panel ${classes.guide}`}>
      <Title order={2} size="h4">
        {kind === "sessions" ? "No calls yet" : "No eval runs yet"}
      </Title>
      <Text size="sm" c="dimmed" mb="md">
        {kind === "sessions"
          ? "Point an agent at this server. A call appears here while it runs and completes when it ends."
          : "Point a test plugin at this server. A run appears here while its tests run."}
      </Text>
      {kind === "sessions" && (
        <Snippet
          title="A LiveKit agent (Python SDK 1.5.1 or newer, Node SDK 1.9 or newer)"
          lines={`LIVEKIT_OBSERVABILITY_URL=${url}\n${livekitKeys(livekit)}`}
          note={
            basic && !livekit
              ? "This server asks for its password, which LiveKit agents cannot send: set LIVEKIT_API_KEY and LIVEKIT_API_SECRET on the server as well."
              : "With a self-hosted LiveKit server also pass record=True to session.start()."
          }
        />
      )}
      <Snippet
        title={kind === "sessions" ? "An agent-transport agent, or tests with the pytest or Vitest plugin of agent-observability" : "The pytest or Vitest plugin of agent-observability"}
        lines={`AGENT_OBSERVABILITY_URL=${url}\nAGENT_OBSERVABILITY_AGENT_ID=<your agent>\n${pluginCredentials(basic, livekit)}`}
      />
      <Snippet title="Or look around with made-up calls" lines={`sidetone demo --url ${url}`} />
      <Text size="sm">
        Everything else is in the <Anchor href="/docs">API reference</Anchor>.
      </Text>
    </div>
  );
}

function livekitKeys(asked: boolean): string {
  return asked
    ? "LIVEKIT_API_KEY=<the key this server has>\nLIVEKIT_API_SECRET=<its secret>"
    : "# any LIVEKIT_API_KEY and LIVEKIT_API_SECRET will do";
}

function pluginCredentials(basic: boolean, livekit: boolean): string {
  if (basic) return "AGENT_OBSERVABILITY_USER=<user>\nAGENT_OBSERVABILITY_PASS=<password>";
  return livekit ? livekitKeys(true) : "# no credentials needed: this server asks for none";
}

function Snippet({ title, lines, note }: { title: string; lines: string; note?: string }) {
  return (
    <section className={classes.snippet}>
      <Text fw={600} size="sm">
        {title}
      </Text>
      <div className={classes.code}>
        <pre>{lines}</pre>
        <CopyText value={lines} label="Copy these lines" />
      </div>
      {note && (
        <Text size="sm" c="dimmed">
          {note}
        </Text>
      )}
    </section>
  );
}
