import { useCallback, useRef, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { useSessions } from "../api/queries";
import { usePageTitle } from "../app/usePageTitle";
import { plural } from "../format/units";
import { ErrorBox } from "../ui/ErrorBox";
import { PageHeader } from "../ui/PageHeader";
import { Pager } from "../ui/Pager";
import { TableSkeleton } from "../ui/TableSkeleton";
import { activeFilters, toQuery, withFilters, type FilterName } from "./filters";
import { NoSessions } from "./NoSessions";
import { SessionFilters } from "./SessionFilters";
import { SessionTable } from "./SessionTable";
import { useListKeys } from "./useListKeys";

export function SessionsPage() {
  usePageTitle("Sessions");
  const [params, setParams] = useSearchParams();
  const navigate = useNavigate();
  const search = useRef<HTMLInputElement>(null);
  const sessions = useSessions(toQuery(params));
  // By id: new calls push the rows down while somebody walks through them.
  const [selectedId, setSelectedId] = useState<string | null>(null);
  const rows = sessions.data?.objects ?? [];

  useListKeys({
    count: rows.length,
    selected: rows.findIndex((row) => row.id === selectedId),
    onSelect: (index) => setSelectedId(rows[index]?.id ?? null),
    onOpen: (index) => {
      const row = rows[index];
      if (row) void navigate(`/sessions/${encodeURIComponent(row.id)}`);
    },
    onSearch: () => search.current?.focus(),
  });
  const change = useCallback(
    (changes: Partial<Record<FilterName, string | null>>) => {
      setSelectedId(null);
      setParams((current) => withFilters(current, changes));
    },
    [setParams],
  );
  const toOffset = (offset: number) => {
    setSelectedId(null);
    setParams((current) => {
      const next = new URLSearchParams(current);
      if (offset > 0) next.set("offset", String(offset));
      else next.delete("offset");
      return next;
    });
  };

  const filtered = activeFilters(params).length > 0;
  return (
    <>
      <PageHeader
        title="Sessions"
        note={sessions.data && `${plural(sessions.data.meta.total_count, "call")}${filtered ? " match" : ""}`}
      />
      <SessionFilters params={params} onChange={change} searchRef={search} rows={rows} />
      {sessions.isError && (
        <ErrorBox title="The sessions could not be read" error={sessions.error} onRetry={() => void sessions.refetch()} />
      )}
      {sessions.isPending && <TableSkeleton rows={12} />}
      {sessions.data && !sessions.isError && (
        <>
          {rows.length === 0 ? (
            <NoSessions filtered={filtered} onClear={() => setParams({})} />
          ) : (
            <SessionTable rows={rows} selectedId={selectedId} stale={sessions.isPlaceholderData} />
          )}
          <Pager meta={sessions.data.meta} onOffset={toOffset} />
        </>
      )}
    </>
  );
}
