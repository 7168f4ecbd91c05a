/** Every page of the dashboard with demo data in it: where it is and when it is complete. */
export async function pagesOf(url) {
  const get = async (path) => (await fetch(url + path)).json();
  const runs = (await get("/api/evals?limit=20&status=failed")).objects;
  const run = await get(`/api/evals/${runs[0].run_id}`);
  const failed = run.cases.find((each) => each.status === "failed") ?? run.cases[0];
  const rules = (await get("/api/alert-rules")).objects;
  const textCall = (await get("/api/sessions?transport=text&limit=1")).objects[0];
  const lanes = async (page) => {
    await page.getByTestId("lanes").waitFor();
    await page.getByRole("region", { name: "Transcript" }).locator("article").first().waitFor();
  };
  const waveform = async (page) => {
    await lanes(page);
    await page.locator("[data-testid=lanes][data-waveform=true]").waitFor();
  };
  const pages = [
    { name: "sessions", path: "/sessions", ready: (page) => page.locator("tbody tr").first().waitFor() },
    { name: "session", path: "/sessions/demo-call-44712?t=22.5", ready: waveform },
    { name: "session-text", path: `/sessions/${textCall.id}`, ready: lanes },
    { name: "session-logs", path: "/sessions/demo-call-44712?tab=logs", ready: (page) => page.getByRole("tabpanel").getByText("received job request").waitFor() },
    { name: "session-events", path: "/sessions/demo-call-44712?tab=events", ready: (page) => page.getByRole("tabpanel").getByRole("table").waitFor() },
    { name: "session-configuration", path: "/sessions/demo-call-44712?tab=configuration", ready: (page) => page.getByText("SDK version").waitFor() },
    { name: "evals", path: "/evals", ready: (page) => page.locator("tbody tr").first().waitFor() },
    { name: "eval-run", path: `/evals/${run.run_id}`, ready: (page) => page.locator("article").first().waitFor() },
    { name: "eval-case", path: `/evals/${run.run_id}/cases/${failed.case_id}`, ready: (page) => page.getByRole("heading", { name: "Transcript" }).waitFor() },
    { name: "eval-compare", path: "/evals/compare", ready: (page) => page.getByText("Unchanged cases").waitFor() },
    { name: "alerts", path: "/alerts", ready: (page) => page.getByRole("link", { name: "New rule" }).waitFor() },
    { name: "alert-new", path: "/alerts/new", ready: (page) => page.getByTestId("preview-summary").waitFor() },
    { name: "missing", path: "/sessions/no-such-call", ready: (page) => page.getByRole("alert").waitFor() },
  ];
  if (rules.length > 0) pages.push({ name: "alert-rule", path: `/alerts/${rules[0].id}`, ready: (page) => page.getByTestId("preview-summary").waitFor() });
  return pages;
}
