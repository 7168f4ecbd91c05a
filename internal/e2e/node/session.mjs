// Runs a text conversation with the published LiveKit Agents SDK against its scripted FakeLLM and lets the SDK send
// everything it knows to an observability server, as a job does at its end. Settings come from the environment:
//
//   SERVER                                 base URL of the server
//   LIVEKIT_API_KEY, LIVEKIT_API_SECRET    the pair that the SDK signs its tokens with
//   ROOM_ID, JOB_ID                        identity of the call
//   RECORDING                              path of an audio file to send along, or empty
//
// The last line on standard output is JSON: what the SDK had to tell.
import { initializeLogger, llm, log, telemetry, version, voice } from '@livekit/agents';
import { z } from 'zod';

const { SERVER, ROOM_ID, JOB_ID, RECORDING } = process.env;
const AGENT = 'support';

initializeLogger({ pretty: false, level: 'warn' });
await telemetry.setupCloudTracer({ observabilityUrl: SERVER, roomId: ROOM_ID, jobId: JOB_ID, agentName: AGENT });

const balance = llm.tool({
  description: 'The balance of an account.',
  parameters: z.object({ account: z.string() }),
  execute: async ({ account }) => {
    if (account !== '42') throw new llm.ToolError(`there is no account ${account}`);
    return 'forty-two dollars';
  },
});

const scripted = new voice.testing.FakeLLM([
  { input: 'Hi there', content: 'Hello! How can I help you today?', ttft: 20 },
  { input: 'What is my balance?', toolCalls: [{ name: 'balance', args: { account: '42' } }] },
  // What a tool returns reaches the model as JSON.
  { input: '"forty-two dollars"', content: 'Your balance is forty-two dollars.' },
  { input: 'And of account 7?', toolCalls: [{ name: 'balance', args: { account: '7' } }] },
  { input: 'there is no account 7', content: 'There is no such account.' },
  { input: 'Thanks, bye', content: 'Goodbye, have a great day.' },
]);

const startedAt = Date.now();
const session = new voice.AgentSession({ llm: scripted });
await session.start({
  agent: new voice.Agent({ instructions: 'Be brief.', tools: { balance } }),
  record: true,
});
for (const userInput of ['Hi there', 'What is my balance?', 'And of account 7?', 'Thanks, bye']) {
  await session.run({ userInput }).wait();
}
log().warn({ account: '42' }, 'the caller asked for a balance');
await session.close();

// What JobContext makes at the end of a job; there is no job here.
const report = {
  jobId: JOB_ID,
  roomId: ROOM_ID,
  room: 'e2e',
  options: {
    ...session.sessionOptions,
    recordingOptions: { audio: Boolean(RECORDING), traces: true, logs: true, transcript: true, redaction: false },
  },
  events: session._recordedEvents,
  chatHistory: session.history.copy(),
  enableRecording: true,
  startedAt,
  timestamp: Date.now(),
  audioRecordingPath: RECORDING || undefined,
  audioRecordingStartedAt: RECORDING ? startedAt : undefined,
  modelUsage: session._usageCollector.flatten(),
};
await telemetry.uploadSessionReport({ agentName: AGENT, observabilityUrl: SERVER, report });
await telemetry.flushPinoLogs();
await telemetry.flushOtelLogs();
await telemetry.flushCloudMetrics();
await telemetry.tracer.getProvider().forceFlush?.();

const items = report.chatHistory.items;
console.log(
  JSON.stringify({
    sdk: version,
    started_at: startedAt,
    items: items.map((item) => item.type),
    answers: items.filter((i) => i.type === 'message' && i.role === 'assistant').map((i) => i.textContent),
  }),
);
process.exit(0);
