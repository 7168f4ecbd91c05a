import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { openPage } from "../browser.mjs";
import { pagesOf } from "../pages.mjs";

const readme = fileURLToPath(new URL("../../../docs/screenshots/", import.meta.url));

/** What the README shows: most of it light, the heart of it dark as well. */
const shown = [
  { page: "sessions", file: "sessions.png" },
  { page: "session", file: "session.png" },
  { page: "session", file: "session-dark.png", colorScheme: "dark" },
  { page: "eval-run", file: "eval-run.png" },
  { page: "alerts", file: "alerts.png" },
];

/** Every page in every size and scheme goes here when SIDETONE_PICTURES names a folder, for somebody to look at. */
const all = process.env.SIDETONE_PICTURES;
const sizes = [
  { width: 1440, height: 900 },
  { width: 1280, height: 720 },
  { width: 390, height: 844 },
];

export default function pictures(world) {
  const take = async (entry, file, options) => {
    const { page, check } = await openPage(world.browser, world.server.url, { ...options, allowed: ["404"] });
    await page.goto(entry.path);
    await entry.ready(page);
    await page.evaluate(() => document.fonts.ready);
    await page.waitForTimeout(600); // charts and the waveform are drawn after the data is there
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(overflow <= 0, `${entry.name} at ${options.width} pixels is ${overflow} pixels too wide`);
    if (file) await page.screenshot({ path: file });
    await check();
  };

  describe("pictures", () => {
    it("makes the screenshots of the README", async () => {
      mkdirSync(readme, { recursive: true });
      const pages = new Map((await pagesOf(world.server.url)).map((entry) => [entry.name, entry]));
      for (const { page, file, colorScheme = "light" } of shown) {
        await take(pages.get(page), readme + file, { width: 1440, height: 900, colorScheme });
      }
    });

    for (const size of sizes) {
      it(`shows every page without sideways scrolling at ${size.width}x${size.height}`, async () => {
        for (const entry of await pagesOf(world.server.url)) {
          for (const colorScheme of all ? ["light", "dark"] : ["light"]) {
            await take(entry, all && `${all}/${entry.name}-${size.width}-${colorScheme}.png`, { ...size, colorScheme });
          }
        }
      });
    }
  });
}
