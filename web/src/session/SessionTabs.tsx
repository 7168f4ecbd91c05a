import { Tabs } from "@mantine/core";
import { lazy, Suspense, type ReactNode } from "react";
import { useSearchParams } from "react-router";
import type { SessionDetail } from "../api/types";
import { TableSkeleton } from "../ui/TableSkeleton";

const MetricsTab = lazy(async () => ({ default: (await import("./tabs/MetricsTab")).MetricsTab }));
const LogsTab = lazy(async () => ({ default: (await import("./tabs/LogsTab")).LogsTab }));
const EventsTab = lazy(async () => ({ default: (await import("./tabs/EventsTab")).EventsTab }));
const ConfigurationTab = lazy(async () => ({ default: (await import("./tabs/ConfigurationTab")).ConfigurationTab }));
const RawTab = lazy(async () => ({ default: (await import("./tabs/RawTab")).RawTab }));

/** What is behind the timeline. The open tab is part of the address; a closed one loads nothing. */
export function SessionTabs({ session }: { session: SessionDetail }) {
  const [params, setParams] = useSearchParams();
  const tabs: [string, string, ReactNode][] = [
    ["metrics", "Metrics", <MetricsTab session={session} />],
    ["logs", "Logs", <LogsTab session={session} />],
    ["events", `Events${session.events ? ` (${session.events.length})` : ""}`, <EventsTab session={session} />],
    ["configuration", "Configuration", <ConfigurationTab session={session} />],
    ["raw", "Raw", <RawTab session={session} />],
  ];
  const wanted = params.get("tab");
  const open = tabs.some(([name]) => name === wanted) ? wanted! : "metrics";
  const select = (name: string | null) => {
    setParams(
      (current) => {
        if (name === null || name === "metrics") current.delete("tab");
        else current.set("tab", name);
        return current;
      },
      { replace: true, preventScrollReset: true },
    );
  };
  return (
    <Tabs value={open} onChange={select} mt="md" keepMounted={false}>
      <Tabs.List>
        {tabs.map(([name, label]) => (
          <Tabs.Tab key={name} value={name}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map(([name, , content]) => (
        <Tabs.Panel key={name} value={name} pt="md">
          <Suspense fallback={<TableSkeleton rows={4} />}>{content}</Suspense>
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
