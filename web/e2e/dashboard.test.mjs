import { after, before } from "node:test";
import { launchBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";
import accessibility from "./suites/accessibility.mjs";
import alerts from "./suites/alerts.mjs";
import deleting from "./suites/deleting.mjs";
import emptyServer from "./suites/empty.mjs";
import evals from "./suites/evals.mjs";
import hardCalls from "./suites/hardCalls.mjs";
import longCall from "./suites/longCall.mjs";
import pictures from "./suites/pictures.mjs";
import session from "./suites/session.mjs";
import sessions from "./suites/sessions.mjs";

/** One server with the demo data and one browser serve all suites, in this order. */
const world = {};

before(async () => {
  world.server = await startServer();
  world.browser = await launchBrowser();
});

after(async () => {
  await world.browser?.close();
  await world.server?.stop();
});

sessions(world);
session(world);
evals(world);
alerts(world); // leaves a rule that has fired, which the next two show
pictures(world);
accessibility(world);
hardCalls(world); // adds calls that the pictures should not have
longCall(world);
deleting(world);
emptyServer(world);
