import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openPage } from "../browser.mjs";
import { message, send } from "./hardCalls.mjs";

export default function deleting(world) {
  describe("deleting a session", () => {
    it("asks first, says what went wrong, and then it is gone", async () => {
      const start = Date.now() / 1000 - 300;
      await send(world.server.url, "unwanted", { chat_history: { items: [message("u", "user", start + 1, "Please forget this call", 2)] }, timestamp: start + 60 }, start);
      const stored = async () => (await fetch(`${world.server.url}/api/sessions/unwanted`)).status;
      const { page, check } = await openPage(world.browser, world.server.url, { allowed: ["503", "404"] });
      await page.goto("/sessions/unwanted");
      const dialog = page.getByRole("dialog", { name: "Delete this session?" });
      await page.getByRole("button", { name: "Delete" }).click();
      await dialog.getByText("unwanted").waitFor();
      await dialog.getByRole("button", { name: "Keep it" }).click();
      await dialog.waitFor({ state: "hidden" });
      assert.equal(await stored(), 200);

      let broken = true;
      await page.route("**/api/sessions", (route) =>
        broken && route.request().method() === "DELETE"
          ? route.fulfill({ status: 503, contentType: "application/json", body: '{"error":{"code":"unavailable","message":"The database is away."}}' })
          : route.continue(),
      );
      await page.getByRole("button", { name: "Delete" }).click();
      await dialog.getByRole("button", { name: "Delete" }).click();
      await dialog.getByRole("alert").getByText("The database is away.").waitFor();
      assert.equal(await stored(), 200);

      broken = false;
      await dialog.getByRole("button", { name: "Delete" }).click();
      await page.waitForURL(/\/sessions$/);
      assert.equal(await stored(), 404);
      await page.getByRole("heading", { name: "Sessions" }).waitFor();
      await page.locator("tbody tr").first().waitFor();
      await page.locator("a[href*=unwanted]").first().waitFor({ state: "detached" }); // the session's own page goes first
      await page.goBack();
      await page.getByRole("alert").getByText("The session could not be read").waitFor();
      await check();
    });
  });
}
