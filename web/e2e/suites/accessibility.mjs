import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, it } from "node:test";
import { openPage } from "../browser.mjs";
import { pagesOf } from "../pages.mjs";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

export default function accessibility(world) {
  describe("accessibility", () => {
    for (const colorScheme of ["light", "dark"]) {
      it(`has nothing serious on any page, ${colorScheme}`, async () => {
        const found = [];
        for (const { name, path, ready } of await pagesOf(world.server.url)) {
          const { page, check } = await openPage(world.browser, world.server.url, { colorScheme, allowed: name === "missing" ? ["404"] : [] });
          await page.goto(path);
          await ready(page);
          // The CSP keeps injected tags out, and that is how it should be: evaluate runs beside it.
          await page.evaluate(await source());
          const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
          for (const violation of violations) {
            if (violation.impact !== "serious" && violation.impact !== "critical") continue;
            found.push(`${name}: ${violation.id}: ${violation.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`).join(" | ")}`);
          }
          await check();
        }
        assert.deepEqual(found, []);
      });
    }
  });
}

async function source() {
  const { readFile } = await import("node:fs/promises");
  return readFile(axe, "utf8");
}
