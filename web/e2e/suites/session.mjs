import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openPage } from "../browser.mjs";

const demoCall = "/sessions/demo-call-44712";

/** Seconds that the clock of the player shows. */
export async function position(page) {
  const text = await page.getByTestId("position").locator("b").innerText();
  const [minutes, seconds] = text.split(":").map(Number);
  return minutes * 60 + seconds;
}

/** The place of a moment of the call on the canvas of the lanes, in pixels of the window. */
export async function pointAt(page, seconds, y) {
  const lanes = page.getByTestId("lanes");
  const box = await lanes.boundingBox();
  const [left, start, end] = await lanes.evaluate((canvas) => ["left", "start", "end"].map((name) => Number(canvas.dataset[name])));
  return { x: box.x + left + ((seconds - start) / (end - start)) * (box.width - left), y: box.y + y };
}

export default function session(world) {
  const open = async (path, options) => {
    const opened = await openPage(world.browser, world.server.url, options);
    await opened.page.goto(path);
    await opened.page.getByTestId("lanes").waitFor();
    return opened;
  };

  describe("session", () => {
    it("tells at once what went wrong on the demo call", async () => {
      const { page, check } = await open(demoCall);
      for (const finding of ["1 slow reply", "1 interruption", "1 failed tool call"]) await page.getByText(finding).waitFor();
      const transcript = page.getByRole("region", { name: "Transcript" });
      const slow = transcript.locator("#turn-5");
      await transcript.evaluate((box) => box.scrollTo(0, box.scrollHeight));
      await slow.getByText("slow, 3.70 s").waitFor();
      await transcript.evaluate((box) => box.scrollTo(0, 0));
      await transcript.locator("#turn-3").getByText("interrupted").waitFor();
      await check();
    });

    it("draws the slow reply in the colour of warnings and the others not", async () => {
      const { page, check } = await open(demoCall);
      await page.waitForTimeout(300); // the canvas is drawn in the next frame
      const warns = async (seconds) => {
        const { x, y } = await pointAt(page, seconds, 40);
        const lanes = await page.getByTestId("lanes").boundingBox();
        return page.getByTestId("lanes").evaluate(
          (canvas, [px, py]) => {
            const ratio = canvas.width / canvas.clientWidth;
            const [r, g, b, a] = canvas.getContext("2d").getImageData(px * ratio, py * ratio, 1, 1).data;
            return a > 0 && r > b + 15 && g > b;
          },
          [x - lanes.x, y - lanes.y],
        );
      };
      assert.equal(await warns(30.5), true, "the wait for the fifth reply is tinted");
      assert.equal(await warns(11.5), false, "the wait for the second is not");
      await check();
    });

    it("plays, pauses and jumps with the keyboard", async () => {
      const { page, check } = await open(demoCall);
      await page.keyboard.press("Space");
      await page.waitForFunction(() => document.querySelector("[data-testid=position] b").textContent > "0:00.5");
      await page.keyboard.press("Space");
      await page.getByRole("button", { name: "Play" }).waitFor();
      const here = await position(page);
      await page.keyboard.press("ArrowRight");
      assert.ok(Math.abs((await position(page)) - here - 5) < 0.3);
      await page.keyboard.press("ArrowLeft");
      assert.ok(Math.abs((await position(page)) - here) < 0.3);
      await check();
    });

    it("plays at another speed and mutes one voice", async () => {
      const { page, check } = await open(demoCall);
      await page.getByRole("button", { name: /^Speed/ }).click();
      await page.getByRole("menuitem", { name: "2×", exact: true }).click();
      await page.getByRole("switch", { name: "Caller" }).uncheck({ force: true });
      await page.getByRole("button", { name: "Play" }).click();
      const begun = Date.now();
      await page.waitForFunction(() => document.querySelector("[data-testid=position] b").textContent > "0:04.0");
      assert.ok(Date.now() - begun < 3_600, "four seconds of the call take about two");
      await check();
    });

    it("seeks where a click falls, and the transcript follows", async () => {
      const { page, check } = await open(demoCall);
      const spot = await pointAt(page, 24, 60);
      await page.mouse.click(spot.x, spot.y);
      assert.ok(Math.abs((await position(page)) - 24) < 0.3);
      const current = page.locator("article[data-current]");
      await current.getByText("Thank you. I can see order").waitFor();
      await page.waitForURL(/[?&]t=2[34]\.\d/);
      await page.getByRole("button", { name: "Go to 0:06" }).click();
      assert.ok(Math.abs((await position(page)) - 6.3) < 0.3);
      await check();
    });

    it("lands where ?t= and #turn- say", async () => {
      const { page, check } = await open(`${demoCall}?t=12.4`);
      assert.ok(Math.abs((await position(page)) - 12.4) < 0.11);
      await page.locator("article[data-current]").getByText("I am sorry about that").waitFor();
      await page.goto(`${demoCall}#turn-3`);
      await page.getByTestId("lanes").waitFor();
      assert.ok(Math.abs((await position(page)) - 16.2) < 0.3, "turn 3 starts with the caller's words");
      await check();
    });

    it("zooms in and out without losing the cursor", async () => {
      const { page, check } = await open(`${demoCall}?t=30`);
      await page.getByRole("button", { name: "Zoom in" }).click();
      await page.getByRole("button", { name: "Zoom in" }).click();
      const lanes = page.getByTestId("lanes");
      await page.waitForFunction(() => Number(document.querySelector("[data-testid=lanes]").dataset.end) < 48);
      const start = Number(await lanes.getAttribute("data-start"));
      const end = Number(await lanes.getAttribute("data-end"));
      assert.ok(start < 30 && end > 30 && end - start < 13, `${start} to ${end}`);
      await page.getByRole("button", { name: "Show the whole call" }).click();
      await page.waitForFunction(() => Number(document.querySelector("[data-testid=lanes]").dataset.start) === 0);
      await check();
    });

    it("reads the recording once and keeps the waveform", async () => {
      const { page, check } = await open(demoCall);
      for (let tries = 0; (await page.evaluate(keptWaveforms)) === 0; tries++) {
        assert.ok(tries < 100, "the waveform is kept within ten seconds");
        await page.waitForTimeout(100);
      }
      const read = [];
      page.on("request", (request) => {
        if (request.url().endsWith("/recording?stream=1") && request.method() === "GET" && request.resourceType() === "fetch") read.push(request.url());
      });
      await page.reload();
      await page.getByTestId("lanes").waitFor();
      await page.waitForTimeout(500);
      assert.deepEqual(read, []);
      await check();
    });

    it("opens each tab and keeps it in the address", async () => {
      const { page, check } = await open(demoCall);
      await page.getByRole("cell", { name: "LLM first token" }).waitFor();
      for (const [tab, content] of [
        ["Logs", "received job request"],
        ["Events", "conversation_item_added"],
        ["Configuration", "min_endpointing_delay"],
        ["Raw", "chat_history"],
      ]) {
        await page.getByRole("tab", { name: tab }).click();
        await page.getByRole("tabpanel").getByText(content).first().waitFor();
        await page.waitForURL(new RegExp(`tab=${tab.toLowerCase()}`));
      }
      await page.reload();
      await page.getByRole("tab", { name: "Raw", selected: true }).waitFor();
      await check();
    });

    it("shows a span with what it carries", async () => {
      const { page, check } = await open(demoCall);
      const spans = page.getByTestId("spans");
      await spans.waitFor();
      const box = await spans.boundingBox();
      await page.mouse.click(box.x + 300, box.y + 30); // the second row
      await page.getByRole("region", { name: "Span agent_session" }).getByText("room_id").waitFor();
      await check();
    });

    it("shows a text session without a recording, and a call that is still going on", async () => {
      const text = await firstSession(world, "transport=text");
      const { page, check } = await open(`/sessions/${text}`);
      await page.getByText("No recording: the cursor moves without sound").waitFor();
      await page.getByText("LLM time").waitFor();
      await check();

      const live = await firstSession(world, "state=active");
      const second = await open(`/sessions/${live}`);
      await second.page.getByText("active", { exact: true }).waitFor();
      await second.page.getByRole("region", { name: "Transcript" }).getByText("Agent").first().waitFor();
      const [again] = await Promise.all([
        second.page.waitForRequest((request) => request.url().endsWith(`/api/sessions/${live}`)),
        second.page.waitForTimeout(10),
      ]);
      assert.ok(again, "an active call is asked for again");
      await second.check();
    });

    it("says so when there is no such session", async () => {
      const { page, check } = await openPage(world.browser, world.server.url, { allowed: ["404"] });
      await page.goto("/sessions/no-such-call");
      await page.getByRole("alert").getByText("The session could not be read").waitFor();
      await check();
    });
  });
}

/** Runs in the page: how many waveforms the browser keeps. */
function keptWaveforms() {
  return new Promise((resolve) => {
    const opening = indexedDB.open("sidetone", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("peaks");
    opening.onsuccess = () => {
      const counting = opening.result.transaction("peaks").objectStore("peaks").count();
      counting.onsuccess = () => {
        opening.result.close();
        resolve(counting.result);
      };
    };
  });
}

async function firstSession(world, filter) {
  const list = await (await fetch(`${world.server.url}/api/sessions?limit=1&${filter}`)).json();
  assert.ok(list.objects.length > 0, `the demo data has a session with ${filter}`);
  return list.objects[0].id;
}
