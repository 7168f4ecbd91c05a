import { Button, Group, Text } from "@mantine/core";
import { IconSend } from "@tabler/icons-react";
import { useTestSend } from "../api/alertQueries";
import { formatLatency } from "../format/units";
import { StatusBadge } from "../ui/StatusBadge";
import classes from "./Alerts.module.css";

/** Sends a signed test payload to the rule's webhook and says what came back. */
export function TestSend({ ruleId }: { ruleId: string }) {
  const test = useTestSend(ruleId);
  return (
    <section className={`panel ${classes.section} ${classes.pad}`} aria-label="Test">
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          Try the webhook without waiting for an incident.
        </Text>
        <Button
          variant="default"
          loading={test.isPending}
          onClick={() => test.mutate()}
          leftSection={<IconSend size={15} stroke={1.6} />}
        >
          Send a test
        </Button>
      </Group>
      <div role="status">
        {test.isError && (
          <Text size="sm" mt="xs" c="var(--st-bad)">
            {test.error.message}
          </Text>
        )}
        {test.data && (
          <Text size="sm" mt="xs" component="div">
            <StatusBadge word={test.data.ok ? "accepted" : "not accepted"} tone={test.data.ok ? "good" : "bad"} />{" "}
            {test.data.response_status !== null && `status ${test.data.response_status} `}
            after {formatLatency(test.data.duration_ms)}
            {test.data.error && `: ${test.data.error}`}
          </Text>
        )}
      </div>
    </section>
  );
}
