import { ActionIcon, Group, Text } from "@mantine/core";
import { IconChevronLeft, IconChevronRight } from "@tabler/icons-react";
import type { ListMeta } from "../api/types";
import { formatCount } from "../format/units";

/** Steps through a list by offset. Shows nothing when everything is on one page. */
export function Pager({ meta, onOffset }: { meta: ListMeta; onOffset: (offset: number) => void }) {
  if (meta.total_count <= meta.limit && meta.offset === 0) return null;
  const last = Math.min(meta.offset + meta.limit, meta.total_count);
  return (
    <Group component="nav" aria-label="Pages" justify="flex-end" gap="xs" mt="sm">
      <Text size="sm" c="dimmed" className="num">
        {formatCount(meta.offset + 1)}–{formatCount(last)} of {formatCount(meta.total_count)}
      </Text>
      <ActionIcon
        variant="default"
        aria-label="Previous page"
        disabled={meta.offset === 0}
        onClick={() => onOffset(Math.max(0, meta.offset - meta.limit))}
      >
        <IconChevronLeft size={16} />
      </ActionIcon>
      <ActionIcon
        variant="default"
        aria-label="Next page"
        disabled={last >= meta.total_count}
        onClick={() => onOffset(meta.offset + meta.limit)}
      >
        <IconChevronRight size={16} />
      </ActionIcon>
    </Group>
  );
}
