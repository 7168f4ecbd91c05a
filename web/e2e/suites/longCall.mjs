import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { openPage } from "../browser.mjs";
import { longRecording } from "../longRecording.mjs";
import { pointAt } from "./session.mjs";

const hour = 3600;
const minute50 = 3000;
/** The overview strip of the lanes, in pixels from the top. */
const overviewY = 12;

/** What is promised for the start on an hour's recording, in ms. It takes 100 to 300 on two idle cores. */
const startLimitMS = 1_000;
/** Finding a place takes the browser half a dozen requests more. */
const seekLimitMS = 2_000;
/** A machine that is busy for a moment is forgiven; a page that is slow is slow every time. */
const tries = 3;

/**
 * How much of the file may have come before it plays. The browser reads up to 1 MB ahead wherever it looks, as fast as
 * the line is: once for the start and once for the length, half a dozen times for a place in the middle.
 */
const startShare = 0.4;
const seekShare = 1;

export default function longCall(world) {
  describe("a call of an hour", () => {
    let size;
    before(async () => {
      const recording = longRecording(hour);
      size = recording.length;
      await send(world.server.url, "one-hour", recording);
    });

    /** Opens the call and follows what is asked of its recording and how much comes. */
    const visit = async (path) => {
      const { page, check } = await openPage(world.browser, world.server.url);
      await page.addInitScript(watchPlayer);
      const asked = await followRecording(page);
      await page.goto(path);
      await page.getByTestId("lanes").waitFor();
      const play = () => page.getByRole("button", { name: "Play", exact: true }).click();
      return { page, check, asked, play };
    };

    const readLittle = (asked, share) => {
      const gets = [...asked.values()].filter((each) => each.method === "GET");
      assert.ok(gets.length > 0, "the recording was asked for");
      for (const each of gets) {
        assert.match(each.range ?? "nothing", /^bytes=\d+-/, "every request is for a range");
        assert.ok(each.status === 206 || each.status === null, `a range was answered with ${each.status}`);
      }
      const bytes = gets.reduce((sum, each) => sum + each.bytes, 0);
      assert.ok(bytes < size * share, `${bytes} of ${size} bytes came before it played`);
      return bytes;
    };

    it("plays within a second, before most of it is there", async (t) => {
      await quickEnough(t, startLimitMS, async () => {
        const { page, check, asked, play } = await visit("/sessions/one-hour");
        await play();
        const took = await heardFrom(page, 0);
        const bytes = readLittle(asked, startShare);
        await check();
        return { took, bytes };
      });
    });

    it("plays from the minute a link names", async (t) => {
      await quickEnough(t, seekLimitMS, async () => {
        const { page, check, asked, play } = await visit(`/sessions/one-hour?t=${minute50}`);
        await play();
        const took = await heardFrom(page, minute50);
        const bytes = readLittle(asked, seekShare);
        await check();
        return { took, bytes };
      });
    });

    it("goes on at minute 50 after a click there", async (t) => {
      await quickEnough(t, seekLimitMS, async () => {
        const { page, check, asked, play } = await visit("/sessions/one-hour");
        await play();
        await heardFrom(page, 0);
        const spot = await pointAt(page, minute50, overviewY);
        await page.mouse.click(spot.x, spot.y);
        const took = await heardFrom(page, minute50 - 10); // a pixel is four seconds
        const bytes = readLittle(asked, seekShare);
        await check();
        return { took, bytes };
      });
    });

    it("measures the waveform a chunk at a time, and goes on where the last visit stopped", async () => {
      const { page, check } = await openPage(world.browser, world.server.url);
      const chunkFrom = (least) =>
        page.waitForRequest((request) => request.resourceType() === "fetch" && request.method() === "GET" && startOf(request) >= least);
      const [first] = await Promise.all([chunkFrom(0), page.goto("/sessions/one-hour")]);
      assert.equal(startOf(first), 0);
      await chunkFrom(1); // the first is measured and kept by now
      await page.goto("about:blank");
      const [again] = await Promise.all([chunkFrom(0), page.goto("/sessions/one-hour")]);
      assert.ok(startOf(again) > 0, "the second visit does not start over");
      await page.locator("[data-testid=lanes][data-waveform=true]").waitFor();
      await check();
    });
  });
}

/** Measures until it was quick enough once. */
async function quickEnough(t, limitMS, measure) {
  const all = [];
  while (all.length < tries) {
    const { took, bytes } = await measure();
    all.push(took);
    t.diagnostic(`${took} ms, ${bytes} bytes`);
    if (took < limitMS) return;
  }
  assert.fail(`it took ${all.join(", ")} ms; ${limitMS} are promised`);
}

/** The first byte of the recording that a request asks for; -1 when it is about something else. */
function startOf(request) {
  if (!request.url().endsWith("/recording?stream=1")) return -1;
  return Number(/^bytes=(\d+)-/.exec(request.headers().range ?? "")?.[1] ?? -1);
}

/** Runs in the page: the player is an element outside the document, so it is caught when it is made. */
function watchPlayer() {
  const Plain = window.Audio;
  window.Audio = function () {
    return (window.player = new Plain());
  };
  for (const kind of ["pointerup", "click"]) window.addEventListener(kind, () => (window.clickedAt = performance.now()), true);
}

/** Waits until the recording really plays behind the given second, and answers how many ms after the last click. */
function heardFrom(page, seconds) {
  return page.evaluate(
    (from) =>
      new Promise((resolve) => {
        let last = null;
        const look = () => {
          const { currentTime, seeking, paused } = window.player;
          const moves = last !== null && currentTime > last;
          if (moves && !seeking && !paused && currentTime > from) return resolve(Math.round(performance.now() - window.clickedAt));
          last = seeking ? null : currentTime;
          requestAnimationFrame(look);
        };
        look();
      }),
    seconds,
  );
}

/** The requests for recordings that a page makes, each with its range, the answer's status and the bytes that came. */
async function followRecording(page) {
  const protocol = await page.context().newCDPSession(page);
  const asked = new Map();
  protocol.on("Network.requestWillBeSent", ({ requestId, request }) => {
    if (request.url.endsWith("/recording?stream=1")) asked.set(requestId, { method: request.method, range: request.headers.Range, status: null, bytes: 0 });
  });
  protocol.on("Network.responseReceived", ({ requestId, response }) => {
    if (asked.has(requestId)) asked.get(requestId).status = response.status;
  });
  protocol.on("Network.dataReceived", ({ requestId, dataLength }) => {
    if (asked.has(requestId)) asked.get(requestId).bytes += dataLength;
  });
  await protocol.send("Network.enable");
  return asked;
}

/** Sends the report of a call as long as its recording, with a question every twenty seconds. */
async function send(url, sessionId, recording) {
  const start = Date.now() / 1000 - hour - 60;
  const items = [];
  for (let second = 0; second < hour; second += 20) {
    const at = start + second;
    items.push({ id: `u${second}`, type: "message", role: "user", content: [`Question at ${second} s`], created_at: at, metrics: { started_speaking_at: at, stopped_speaking_at: at + 6 } });
  }
  const body = { chat_history: { items }, timestamp: start + hour, audio_recording_started_at: start };
  const form = new FormData();
  form.set("header", new Blob([JSON.stringify({ session_id: sessionId, start_time: start, transport: "sip" })], { type: "application/json" }), "header.json");
  form.set("chat_history", new Blob([JSON.stringify(body)], { type: "application/json" }), "chat_history.json");
  form.set("audio", new Blob([recording], { type: "audio/ogg" }), "recording.ogg");
  const response = await fetch(`${url}/observability/recordings/v0`, { method: "POST", body: form });
  assert.equal(response.status, 200, await response.text());
}
