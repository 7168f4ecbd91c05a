import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openPage } from "../browser.mjs";

export default function evals(world) {
  describe("evals", () => {
    it("goes from the runs to a failing case and its verdicts", async () => {
      const { page, check } = await openPage(world.browser, world.server.url);
      await page.goto("/evals");
      const run = page.locator("tbody tr").filter({ hasText: "failed" }).first();
      await run.locator("a[href^='/evals/']").click();
      const failed = page.locator("section").filter({ has: page.getByRole("heading", { name: /^failed/ }) });
      await failed.locator("article a").first().click();
      await page.getByRole("heading", { name: "Transcript" }).waitFor();
      await page.getByRole("heading", { name: "Judges" }).waitFor();
      assert.match(page.url(), /\/evals\/[0-9a-f-]{36}\/cases\/[0-9a-f-]{36}$/);
      await check();
    });

    it("links to the CI run and nowhere else", async () => {
      const { page, check } = await openPage(world.browser, world.server.url);
      await page.goto("/evals");
      const link = page.locator("tbody a[target=_blank]").first();
      assert.match(await link.getAttribute("href"), /^https:\/\//);
      assert.equal(await link.getAttribute("rel"), "noreferrer");
      await check();
    });

    it("compares two runs that were ticked", async () => {
      const { page, check } = await openPage(world.browser, world.server.url);
      await page.goto("/evals?testing_framework=pytest");
      const ticks = page.getByRole("checkbox");
      await ticks.nth(1).check();
      await ticks.nth(0).check();
      await page.getByRole("link", { name: "Compare the two" }).click();
      await page.waitForURL(/base=.+&head=.+/);
      await page.getByRole("heading", { name: /^Newly failing/ }).waitFor();
      await page.getByRole("heading", { name: /^Newly passing \([1-9]/ }).waitFor();
      await check();
    });
  });
}
