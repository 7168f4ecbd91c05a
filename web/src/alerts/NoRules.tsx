import { Anchor, Text } from "@mantine/core";
import { Link } from "react-router";

export function NoRules() {
  return (
    <div className="panel" style={{ padding: 24, maxWidth: 720 }}>
      <Text fw={600}>No rules yet</Text>
      <Text size="sm" c="dimmed" mt={4}>
        A rule watches one number over a sliding window, such as the p95 of the reply time over the last hour, and calls a
        webhook when it goes above a threshold.{" "}
        <Anchor component={Link} to="/alerts/new">
          Create the first one
        </Anchor>
        : the form shows when it would have fired.
      </Text>
    </div>
  );
}
