import assert from "node:assert/strict";
import { chromium } from "playwright-core";

/** Debian's Chromium, unless another one is named. */
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function launchBrowser() {
  return chromium.launch({ executablePath, args: flags });
}

/**
 * Opens a page that reports what must never happen: errors in the console (a violated Content-Security-Policy is one),
 * exceptions, and requests to any other host. Call check() at the end of a test.
 */
export async function openPage(browser, baseURL, { width = 1440, height = 900, colorScheme = "light", allowed = [] } = {}) {
  const context = await browser.newContext({ baseURL, viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const trouble = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !allowed.some((words) => message.text().includes(words))) trouble.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => trouble.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    const target = new URL(request.url());
    if (target.protocol !== "data:" && target.protocol !== "blob:" && target.origin !== baseURL) trouble.push(`foreign request: ${request.url()}`);
  });
  return {
    page,
    async check() {
      await context.close();
      assert.deepEqual(trouble, []);
    },
  };
}
