import { Skeleton } from "@mantine/core";
import { useParams } from "react-router";
import { usePageTitle } from "../app/usePageTitle";
import { ApiError } from "../api/client";
import { useSession } from "../api/queries";
import { ErrorBox } from "../ui/ErrorBox";
import { SessionView } from "./SessionView";

export function SessionPage() {
  const id = useParams().id ?? "";
  const session = useSession(id);
  usePageTitle(session.data?.agent_name ?? id);
  // What is remembered of a call outlives it, for instance when somebody goes back to the page it was deleted on.
  const gone = session.error instanceof ApiError && session.error.status === 404;
  if (session.data && !gone) return <SessionView key={id} session={session.data} />;
  if (session.isError) {
    return <ErrorBox title="The session could not be read" error={session.error} onRetry={() => void session.refetch()} />;
  }
  return (
    <div role="status" aria-label="Loading the session">
      <Skeleton height={28} width={320} mb="sm" />
      <Skeleton height={18} width={560} maw="100%" mb="md" />
      <Skeleton height={330} />
    </div>
  );
}
