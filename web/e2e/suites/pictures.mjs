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
  const open = async (entry, options) => {
    const opened = await openPage(world.browser, world.server.url, { ...options, allowed: ["404"] });
    await opened.page.goto(entry.path);
    await entry.ready(opened.page);
    await opened.page.evaluate(() => document.fonts.ready);
    await opened.page.waitForTimeout(400); // charts move into place
    return opened;
  };

  describe("pictures", () => {
    it("makes the screenshots of the README", async () => {
      mkdirSync(readme, { recursive: true });
      const pages = new Map((await pagesOf(world.server.url)).map((entry) => [entry.name, entry]));
      for (const { page: name, file, colorScheme = "light" } of shown) {
        const { page, check } = await open(pages.get(name), { width: 1440, height: 900, colorScheme });
        await page.screenshot({ path: readme + file });
        await check();
      }
    });

    it("shows every page in every size without sideways scrolling", async () => {
      for (const entry of await pagesOf(world.server.url)) {
        for (const colorScheme of all ? ["light", "dark"] : ["light"]) {
          const { page, check } = await open(entry, { ...sizes[0], colorScheme });
          for (const size of sizes) {
            await page.setViewportSize(size);
            await page.waitForTimeout(250); // canvases are drawn again in the frame after
            const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            assert.ok(overflow <= 0, `${entry.name} at ${size.width} pixels is ${overflow} pixels too wide`);
            if (all) await page.screenshot({ path: `${all}/${entry.name}-${size.width}-${colorScheme}.png` });
          }
          await check();
        }
      }
    });
  });
}
