import { Button, Select, Skeleton } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { useEvalRuns, type EvalQuery } from "../api/queries";
import { usePageTitle } from "../app/usePageTitle";
import { plural } from "../format/units";
import { ErrorBox } from "../ui/ErrorBox";
import { PageHeader } from "../ui/PageHeader";
import { Pager } from "../ui/Pager";
import { SetupGuide } from "../ui/SetupGuide";
import { TableSkeleton } from "../ui/TableSkeleton";
import { RunTable } from "./RunTable";
import classes from "./Evals.module.css";

const PassRateTrend = lazy(async () => ({ default: (await import("./PassRateTrend")).PassRateTrend }));

const filters = ["status", "testing_framework", "agent_id", "account_id"] as const;
const statuses = ["running", "completed", "failed", "cancelled", "queued"];
const frameworks = ["pytest", "vitest"];

export function RunsPage() {
  usePageTitle("Evals");
  const [params, setParams] = useSearchParams();
  const [chosen, setChosen] = useState<string[]>([]);
  const query: EvalQuery = { limit: "20", offset: params.get("offset") ?? undefined };
  for (const name of filters) {
    const value = params.get(name);
    if (value) query[name] = value;
  }
  const filtered = filters.some((name) => params.get(name));
  const runs = useEvalRuns(query);
  const set = (name: string, value: string | null) =>
    setParams((current) => {
      const next = new URLSearchParams(current);
      if (name !== "offset") next.delete("offset");
      if (value) next.set(name, value);
      else next.delete(name);
      return next;
    });
  const [base, head] = chosen.toReversed();

  return (
    <>
      <PageHeader title="Evals" note={runs.data && plural(runs.data.meta.total_count, "run")}>
        <Select
          aria-label="Status"
          placeholder="Any status"
          data={statuses}
          value={params.get("status")}
          onChange={(value) => set("status", value)}
          clearable
          w={140}
        />
        <Select
          aria-label="Test framework"
          placeholder="Any framework"
          data={frameworks}
          value={params.get("testing_framework")}
          onChange={(value) => set("testing_framework", value)}
          clearable
          w={160}
        />
        {base && head ? (
          <Button component={Link} to={`/evals/compare?base=${base}&head=${head}`}>
            Compare the two
          </Button>
        ) : (
          <Button variant="default" component={Link} to="/evals/compare">
            Compare runs
          </Button>
        )}
      </PageHeader>
      {runs.isError && <ErrorBox title="The eval runs could not be read" error={runs.error} onRetry={() => void runs.refetch()} />}
      {runs.isPending && <TableSkeleton rows={10} />}
      {runs.data && !runs.isError && runs.data.objects.length === 0 && !filtered && <SetupGuide kind="evals" />}
      {runs.data && !runs.isError && runs.data.objects.length === 0 && filtered && (
        <div className={`panel ${classes.empty}`}>No run matches these filters.</div>
      )}
      {runs.data && !runs.isError && runs.data.objects.length > 0 && (
        <>
          <Suspense fallback={<Skeleton height={150} mb="md" />}>
            <PassRateTrend runs={runs.data.objects} />
          </Suspense>
          <RunTable
            runs={runs.data.objects}
            chosen={chosen}
            onChoose={(runId, on) => setChosen((current) => (on ? [runId, ...current].slice(0, 2) : current.filter((other) => other !== runId)))}
          />
          <Pager meta={runs.data.meta} onOffset={(offset) => set("offset", offset > 0 ? String(offset) : null)} />
        </>
      )}
    </>
  );
}
