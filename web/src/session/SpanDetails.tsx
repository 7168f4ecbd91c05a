import { CloseButton, Group, Text } from "@mantine/core";
import { formatClock, formatLatency } from "../format/units";
import { JsonView } from "../ui/JsonView";
import type { SpanRow } from "./model/spans";

/** Everything a span carries, below the waterfall it was picked from. */
export function SpanDetails({ row, onClose }: { row: SpanRow; onClose: () => void }) {
  const { span } = row;
  return (
    <section aria-label={`Span ${span.name}`} style={{ padding: 12, borderTop: "1px solid var(--st-line)" }}>
      <Group justify="space-between" mb={6}>
        <Text fw={600} size="sm" aria-live="polite">
          {span.name}{" "}
          <Text span c="dimmed" fw={400} className="num">
            at {formatClock(row.start, 2)}, {row.open ? "never ended" : formatLatency((row.end - row.start) * 1000)}
            {span.status_message && `, ${span.status_message}`}
          </Text>
        </Text>
        <CloseButton size="sm" onClick={onClose} aria-label="Close the span" />
      </Group>
      <JsonView value={span.attributes} label="span attributes" maxHeight={220} />
      {span.events && span.events.length > 0 && (
        <>
          <Text size="sm" fw={600} my={6}>
            Events
          </Text>
          <JsonView value={span.events} label="span events" maxHeight={220} />
        </>
      )}
    </section>
  );
}
