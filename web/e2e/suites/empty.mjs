import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openPage } from "../browser.mjs";
import { startServer } from "../server.mjs";

export default function emptyServer(world) {
  describe("a server without data", () => {
    it("says how to send some, with its own address", async () => {
      const server = await startServer({ demo: false });
      try {
        const { page, check } = await openPage(world.browser, server.url);
        await page.goto("/sessions");
        await page.getByText(`LIVEKIT_OBSERVABILITY_URL=${server.url}`).waitFor();
        await page.goto("/evals");
        await page.getByText(`AGENT_OBSERVABILITY_URL=${server.url}`).waitFor();
        await page.goto("/alerts");
        await page.getByText("No rules yet").waitFor();
        await page.getByText("Everyone who reaches this server can read these calls").waitFor();
        await check();
      } finally {
        await server.stop();
      }
    });

    it("shows no banner behind a password", async () => {
      const server = await startServer({ demo: false, env: { AGENT_OBSERVABILITY_USER: "ada", AGENT_OBSERVABILITY_PASS: "lovelace" } });
      const context = await world.browser.newContext({ baseURL: server.url, httpCredentials: { username: "ada", password: "lovelace" } });
      try {
        const page = await context.newPage();
        await page.goto("/sessions");
        await page.getByText("No calls yet").waitFor();
        assert.equal(await page.getByRole("complementary", { name: "Access" }).count(), 0);
      } finally {
        await context.close();
        await server.stop();
      }
    });
  });
}
