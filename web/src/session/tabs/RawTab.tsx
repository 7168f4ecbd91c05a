import { Text } from "@mantine/core";
import type { SessionDetail } from "../../api/types";
import { JsonView } from "../../ui/JsonView";

/** The report as it came in. */
export function RawTab({ session }: { session: SessionDetail }) {
  if (session.raw_report == null) {
    return (
      <Text c="dimmed" size="sm">
        No report has arrived for this session; what is shown comes from its logs and spans.
      </Text>
    );
  }
  return <JsonView value={session.raw_report} label="raw report" maxHeight={720} />;
}
