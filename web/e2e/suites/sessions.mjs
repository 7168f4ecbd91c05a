import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openPage } from "../browser.mjs";

export default function sessions(world) {
  const open = (options) => openPage(world.browser, world.server.url, options);
  const rows = (page) => page.locator("tbody tr");

  describe("sessions", () => {
    it("shows a page of calls and loads nothing but what it shows", async () => {
      const { page, check } = await open();
      const asked = [];
      page.on("request", (request) => asked.push(new URL(request.url()).pathname));
      await page.goto("/");
      await rows(page).first().waitFor();
      assert.equal(await rows(page).count(), 20);
      assert.match(page.url(), /\/sessions$/);
      assert.deepEqual([...new Set(asked.filter((path) => path.startsWith("/api")))].toSorted(), ["/api/sessions", "/api/status"]);
      await check();
    });

    it("keeps filters in the address, and the address brings them back", async () => {
      const { page, check } = await open();
      await page.goto("/sessions");
      await page.getByRole("button", { name: "More filters" }).click();
      const account = page.getByRole("combobox", { name: "Account" });
      await account.fill("kestrel-air");
      await account.press("Enter");
      await page.waitForURL(/account_id=kestrel-air/);
      await page.getByRole("combobox", { name: "Outcome" }).click();
      await page.getByRole("option", { name: "fail", exact: true }).click();
      await page.waitForURL(/outcome=fail/);
      await page.getByText(/calls? match/).waitFor();

      await page.goto("/sessions?account_id=kestrel-air&outcome=success");
      await rows(page).first().waitFor();
      for (const text of await rows(page).allInnerTexts()) {
        assert.match(text, /kestrel-air/);
        assert.match(text, /success/);
      }
      await page.getByRole("button", { name: "Remove the filter Account: kestrel-air" }).click();
      await page.waitForURL((url) => !url.search.includes("account_id"));
      await check();
    });

    it("searches the transcripts and marks what it found", async () => {
      const { page, check } = await open();
      await page.goto("/sessions");
      await rows(page).first().waitFor();
      await page.keyboard.press("/");
      await page.keyboard.type("coffee grinder");
      await page.waitForURL(/q=coffee/);
      await page.locator("mark").first().waitFor();
      assert.match(await page.locator("mark").first().innerText(), /coffee|grinder/i);
      await check();
    });

    it("is walked with j and k, and Enter opens", async () => {
      const { page, check } = await open();
      await page.goto("/sessions?has_recording=true");
      await rows(page).first().waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("j");
      await page.keyboard.press("k");
      assert.equal(await page.locator("tr[data-selected]").count(), 1);
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/sessions\/.+/);
      await page.getByRole("region", { name: "Timeline" }).waitFor();
      await check();
    });

    it("turns pages and comes back to the same one", async () => {
      const { page, check } = await open();
      await page.goto("/sessions");
      const first = await rows(page).first().innerText();
      await page.getByRole("button", { name: "Next page" }).click();
      await page.waitForURL(/offset=20/);
      await page.getByText(/^21–40 of/).waitFor();
      assert.notEqual(await rows(page).first().innerText(), first);
      await page.goBack();
      await page.getByText(/^1–20 of/).waitFor();
      await check();
    });

    it("says what went wrong and tries again", async () => {
      const { page, check } = await open({ allowed: ["503"] });
      let broken = true;
      await page.route("**/api/sessions?*", (route) =>
        broken
          ? route.fulfill({ status: 503, contentType: "application/json", body: '{"error":{"code":"unavailable","message":"The database is away."}}' })
          : route.continue(),
      );
      await page.goto("/sessions");
      await page.getByRole("alert").getByText("The database is away.").waitFor();
      broken = false;
      await page.getByRole("button", { name: "Try again" }).click();
      await rows(page).first().waitFor();
      await check();
    });
  });
}
