import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** How long the server may take to answer after its start, in ms. */
const startLimitMS = 20_000;

/**
 * Builds the program with the dashboard in it, starts it on an empty SQLite database and, if asked, fills it with the
 * demo data. Answers its address and a function that stops it and removes what it wrote.
 */
export async function startServer({ demo = true, env = {} } = {}) {
  if (!existsSync(join(root, "internal/webui/dist/index.html"))) {
    throw new Error("The dashboard is not built: run `npm run build` first.");
  }
  const folder = mkdtempSync(join(tmpdir(), "sidetone-e2e-"));
  // SIDETONE_PROGRAM names a program that was built before, with the dashboard in it.
  const program = process.env.SIDETONE_PROGRAM ?? join(folder, "sidetone");
  if (!process.env.SIDETONE_PROGRAM) execFileSync("go", ["build", "-o", program, "./cmd/sidetone"], { cwd: root, stdio: "inherit" });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const server = spawn(program, ["serve"], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, DATABASE_URL: `sqlite:${folder}/e2e.db`, RECORDINGS_DIR: `${folder}/recordings`, HOST: "127.0.0.1", PORT: String(port), LOG_LEVEL: "warn", ...env },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const stop = async () => {
    if (server.exitCode === null) {
      const ended = new Promise((resolve) => server.once("exit", resolve));
      server.kill("SIGTERM");
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await answers(url, server);
    if (demo) execFileSync(program, ["demo", "--url", url], { stdio: "ignore" });
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop };
}

async function answers(url, server) {
  for (const end = Date.now() + startLimitMS; Date.now() < end; ) {
    if (server.exitCode !== null) throw new Error(`The server ended with code ${server.exitCode}.`);
    const ok = await fetch(`${url}/ready`).then((response) => response.ok, () => false);
    if (ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`The server did not answer within ${startLimitMS} ms.`);
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
