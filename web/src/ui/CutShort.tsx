import { Text } from "@mantine/core";
import type { WholeList } from "../api/client";
import { formatCount } from "../format/units";

/** Says that a list is too long to be shown whole; nothing when it is not. */
export function CutShort({ list, of }: { list: WholeList<unknown> | undefined; of: string }) {
  if (!list || list.rows.length >= list.total) return null;
  return (
    <Text size="sm" c="dimmed" role="note" className="num" my="xs">
      Showing the first {formatCount(list.rows.length)} of {formatCount(list.total)} {of}.
    </Text>
  );
}
