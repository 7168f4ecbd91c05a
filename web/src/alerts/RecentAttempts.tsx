import { Text } from "@mantine/core";
import { useWebhookAttempts } from "../api/alertQueries";
import { ErrorBox } from "../ui/ErrorBox";
import { TableSkeleton } from "../ui/TableSkeleton";
import { AttemptTable } from "./AttemptTable";
import classes from "./Alerts.module.css";

export function RecentAttempts() {
  const attempts = useWebhookAttempts({ limit: "10" });
  return (
    <section className={`panel ${classes.section}`} aria-labelledby="attempts">
      <div className={classes.sectionHead}>
        <h2 id="attempts">Recent attempts</h2>
      </div>
      {attempts.isError && <ErrorBox title="The attempts could not be read" error={attempts.error} onRetry={() => void attempts.refetch()} />}
      {attempts.isPending && <TableSkeleton rows={4} />}
      {attempts.data?.objects.length === 0 && (
        <Text size="sm" c="dimmed" className={classes.pad}>
          Nothing was sent yet.
        </Text>
      )}
      {attempts.data && attempts.data.objects.length > 0 && <AttemptTable attempts={attempts.data.objects} withRule />}
    </section>
  );
}
