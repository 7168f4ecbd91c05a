import { Button, Text } from "@mantine/core";
import { SetupGuide } from "../ui/SetupGuide";

/** Nothing matches, or nothing was ever sent: two different answers. */
export function NoSessions({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  if (!filtered) return <SetupGuide kind="sessions" />;
  return (
    <div className="panel" style={{ padding: 24 }}>
      <Text fw={600}>No call matches these filters</Text>
      <Text size="sm" c="dimmed" mb="sm">
        Search looks at whole words of the transcripts.
      </Text>
      <Button size="xs" variant="default" onClick={onClear}>
        Clear all filters
      </Button>
    </div>
  );
}
