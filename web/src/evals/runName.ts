import type { EvalRun } from "../api/types";

/** A run's own name, else the agent it tested. */
export function runName(run: EvalRun): string {
  return run.name ?? run.agent_name ?? run.agent_id ?? run.run_id.slice(0, 8);
}
