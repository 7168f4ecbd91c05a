import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openPage } from "../browser.mjs";
import { startReceiver } from "../webhook.mjs";

/** The sweeper looks every 30 s; a firing shows up within this many ms of the rule. */
const firingLimitMS = 45_000;

export default function alerts(world) {
  describe("alerts", () => {
    it("takes a rule from its preview to a firing and the calls behind it, by keyboard alone", async () => {
      const receiver = await startReceiver();
      const { page, check } = await openPage(world.browser, world.server.url, { allowed: ["400"] });
      try {
        await page.goto("/alerts/new");
        await fill(page, "Name", "Slow replies");
        await fill(page, "Is above", "500");
        await fill(page, "Over", "5");
        await fill(page, "Secret", "tell-no-one");

        // The server's words land at the fields it complains about.
        await page.getByLabel("Name").focus();
        await page.keyboard.press("Enter");
        await page.getByText(/integer from 15/).waitFor();
        await page.getByText(/required: an http or https URL/).waitFor();

        await fill(page, "Over", "1440");
        await fill(page, "Webhook URL", receiver.url);
        await page.getByTestId("preview-summary").getByText(/It would have fired/).waitFor();
        await page.keyboard.press("Enter");
        await page.waitForURL(/\/alerts\/[0-9a-f-]{36}$/);

        await page.getByRole("button", { name: "Send a test" }).focus();
        await page.keyboard.press("Enter");
        await page.getByText("accepted", { exact: true }).waitFor();
        assert.equal(receiver.received[0].body.type, "alert.test");
        assert.match(receiver.received[0].headers["x-alert-signature"], /^sha256=[0-9a-f]{64}$/);

        await page.getByText("delivered").waitFor({ timeout: firingLimitMS });
        const firing = receiver.received.find(({ body }) => body.type === "alert.triggered");
        assert.equal(firing.body.rule.name, "Slow replies");
        assert.ok(firing.body.observed_value > 500);

        const attempts = page.getByRole("button", { name: /^Attempts/ });
        await attempts.focus();
        await page.keyboard.press("Enter");
        await page.getByRole("cell", { name: "204", exact: true }).first().waitFor();
        const sample = page.locator("a[href^='/sessions/']").last();
        await sample.focus();
        await page.keyboard.press("Enter");
        await page.getByTestId("lanes").waitFor();
        await check();
      } finally {
        await receiver.stop();
      }
    });

    it("lists the rule as firing, with its deliveries", async () => {
      const { page, check } = await openPage(world.browser, world.server.url);
      await page.goto("/alerts");
      const rule = page.locator("tbody tr").filter({ hasText: "Slow replies" }).first();
      await rule.getByText("firing", { exact: true }).waitFor();
      await rule.getByText(/above 500 ms/).waitFor();
      await page.getByRole("heading", { name: "Deliveries" }).waitFor();
      await page.getByText("with a 2xx answer").waitFor();
      assert.ok((await page.getByRole("cell", { name: "204", exact: true }).count()) >= 2);
      await check();
    });

    it("edits a rule in percent, disables it and deletes it", async () => {
      const { page, check } = await openPage(world.browser, world.server.url);
      const created = await fetch(`${world.server.url}/api/alert-rules`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: "Judges", metric: "eval_fail_rate", threshold_value: 0.9, window_minutes: 15, webhook_url: "http://127.0.0.1:9/x", judge_name: "accuracy" }),
      });
      const { id } = await created.json();
      await page.goto(`/alerts/${id}/edit`);
      assert.equal(await page.getByLabel("Is above").inputValue(), "90 %");
      await fill(page, "Is above", "95.5");
      await page.getByRole("button", { name: "Save" }).click();
      await page.waitForURL(new RegExp(`/alerts/${id}$`));
      const stored = await (await fetch(`${world.server.url}/api/alert-rules/${id}`)).json();
      assert.equal(stored.threshold_value, 0.955);
      assert.equal(stored.judge_name, "accuracy");
      await page.getByRole("button", { name: "Disable" }).click();
      await page.getByText("never evaluated").waitFor();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await page.waitForURL(/\/alerts$/);
      assert.equal((await fetch(`${world.server.url}/api/alert-rules/${id}`)).status, 404);
      await check();
    });
  });
}

/** Types into a field as a person without a mouse would. */
async function fill(page, label, value) {
  const field = page.getByRole("textbox", { name: label, exact: false }).or(page.getByLabel(label)).first();
  await field.focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type(value);
}
