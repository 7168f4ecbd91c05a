import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openPage } from "../browser.mjs";
import { position } from "./session.mjs";

/** Sends a session report as an agent without a recording does. */
export async function send(url, sessionId, body, start) {
  const form = new FormData();
  form.set("header", new Blob([JSON.stringify({ session_id: sessionId, start_time: start, transport: "sip" })], { type: "application/json" }), "header.json");
  form.set("chat_history", new Blob([JSON.stringify(body)], { type: "application/json" }), "chat_history.json");
  const response = await fetch(`${url}/observability/recordings/v0`, { method: "POST", body: form });
  assert.equal(response.status, 200, await response.text());
}

export const message = (id, role, at, words, seconds, metrics = {}) => ({
  id,
  type: "message",
  role,
  content: [words],
  created_at: at,
  metrics: seconds === null ? {} : { started_speaking_at: at, stopped_speaking_at: at + seconds, ...metrics },
});

export default function hardCalls(world) {
  describe("hard calls", () => {
    it("shows two hours with 500 turns, and stays quick", async () => {
      const start = Date.now() / 1000 - 8000;
      const items = [];
      for (let turn = 0; turn < 500; turn++) {
        const at = start + turn * 14.4;
        items.push(message(`u${turn}`, "user", at, `Question number ${turn}`, 4, { end_of_turn_delay: 0.5, transcription_delay: 0.2 }));
        items.push(message(`a${turn}`, "assistant", at + (turn === 250 ? 8 : 5), `Answer number ${turn}. ${"More words. ".repeat(turn % 7)}`, 5, { llm_node_ttft: 0.3, tts_node_ttfb: 0.1, e2e_latency: turn === 250 ? 4 : 1 }));
      }
      await send(world.server.url, "two-hours", { chat_history: { items }, timestamp: start + 7200 }, start);
      const { page, check } = await openPage(world.browser, world.server.url);
      await page.goto("/sessions/two-hours#turn-250");
      const lanes = page.getByTestId("lanes");
      await lanes.waitFor();
      await page.locator("article[data-current]").getByText(/number 249/).waitFor();
      assert.ok((await page.locator("article").count()) < 60, "only what is in sight is in the page");
      assert.ok(Number(await lanes.getAttribute("data-end")) - Number(await lanes.getAttribute("data-start")) < 120, "a link into a long call shows its surroundings");
      await page.getByText("1 slow reply").waitFor();

      await page.getByRole("button", { name: "Show the whole call" }).click();
      await page.waitForFunction(() => Number(document.querySelector("[data-testid=lanes]").dataset.end) > 7000);
      const box = await lanes.boundingBox();
      await page.mouse.move(box.x + 500, box.y + 120);
      // Zooming far in and out again: forty steps, each drawn.
      const took = await page.evaluate(async () => {
        const canvas = document.querySelector("[data-testid=lanes]");
        const begun = performance.now();
        for (let step = 0; step < 40; step++) {
          canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: step < 20 ? -60 : 60, ctrlKey: true, bubbles: true, cancelable: true, clientX: 500, clientY: 300 }));
          await new Promise(requestAnimationFrame);
        }
        return performance.now() - begun;
      });
      assert.ok(took < 4_000, `forty steps of zoom took ${Math.round(took)} ms`);
      await page.keyboard.press("End");
      await check();
    });

    it("says so when there are more spans and lines than it shows", async () => {
      const count = 10_200;
      const start = Date.now() - 600_000;
      const nano = (index) => `${BigInt(start + index * 50) * 1_000_000n}`;
      const owner = [{ key: "room_id", value: { stringValue: "talkative" } }, { key: "job_id", value: { stringValue: "AJ_talkative" } }];
      const sendRecords = async (signal, records) => {
        const response = await fetch(`${world.server.url}/observability/${signal}/otlp/v0`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(records) });
        assert.equal(response.status, 200, await response.text());
      };
      const indexes = Array.from({ length: count }, (_, index) => index);
      const traceId = "5".repeat(32);
      const spans = indexes.map((index) => ({ traceId, spanId: (index + 1).toString(16).padStart(16, "0"), name: "step", startTimeUnixNano: nano(index), endTimeUnixNano: nano(index + 1), attributes: owner }));
      const logRecords = indexes.map((index) => ({ timeUnixNano: nano(index), severityNumber: 9, severityText: "INFO", body: { stringValue: `line ${index}` }, attributes: owner }));
      await sendRecords("traces", { resourceSpans: [{ scopeSpans: [{ spans }] }] });
      await sendRecords("logs", { resourceLogs: [{ scopeLogs: [{ logRecords }] }] });
      const { page, check } = await openPage(world.browser, world.server.url);
      await page.goto("/sessions/talkative?tab=logs");
      await page.getByText("Showing the first 10,000 of 10,200 spans.").waitFor();
      await page.getByText("Showing the first 10,000 of 10,200 lines.").waitFor();
      await check();
    });

    it("shows what is out of order, without times, unknown, very long or right to left", async () => {
      const start = Math.floor(Date.now() / 1000) - 600;
      const items = [
        message("late", "assistant", start + 20, "This came last", 2, { e2e_latency: 1 }),
        message("early", "user", start + 5, "This came first", 2),
        { id: "x", type: "hologram_projected", created_at: start + 9, colour: "<b>blue</b>" },
        { id: "no-time", type: "message", role: "user", content: ["No time at all"] },
        message("rtl", "user", start + 12, "أريد استرداد المبلغ من فضلك", 3),
        message("long", "assistant", start + 30, "word ".repeat(4000), 3, { e2e_latency: 0.9 }),
        message("html", "user", start + 40, "<img src=x onerror=alert(1)><script>alert(2)</script>", null),
        { id: "open", type: "message", role: "assistant", content: ["Never stopped"], created_at: start + 45, metrics: { started_speaking_at: start + 45 } },
        { id: "call", type: "function_call", call_id: "c1", name: "lookup", arguments: "not json", created_at: start + 46 },
        { id: "broken-clock", type: "message", role: "user", content: ["From 1971"], created_at: 40_000_000 },
      ];
      const events = [{ type: "comet_sighted", created_at: start + 15, size: 3 }, { type: "error", created_at: start + 16, error: { message: "boom" } }, { created_at: "soon" }, null, "an event"];
      await send(world.server.url, "hard-call", { chat_history: { items }, events, timestamp: start + 60 }, start);
      const { page, check } = await openPage(world.browser, world.server.url);
      await page.goto("/sessions/hard-call");
      await page.getByTestId("lanes").waitFor();
      const transcript = page.getByRole("region", { name: "Transcript" });
      const words = [];
      await transcript.locator("article").first().waitFor();
      for (let top = 0; top < 3000; top += 200) {
        await transcript.evaluate((box, to) => box.scrollTo(0, to), top);
        for (const text of await transcript.locator("article").allInnerTexts()) if (!words.includes(text)) words.push(text);
      }
      const all = words.join("\n");
      assert.ok(all.indexOf("This came first") < all.indexOf("This came last"));
      for (const part of ["hologram_projected", "No time at all", "أريد استرداد", "Show all 19,999 characters", "<img src=x onerror=alert(1)>", "Never stopped", "no result"]) {
        assert.ok(all.includes(part), `the transcript has ${part}`);
      }
      const end = Number(await page.getByTestId("lanes").getAttribute("data-end"));
      assert.ok(end < 3700, `a broken clock does not stretch the axis to ${end} s`);
      await page.getByRole("tab", { name: /^Events/ }).click();
      await page.getByText("comet_sighted").first().waitFor();
      assert.equal(await position(page), 0);
      await check();
    });
  });
}
