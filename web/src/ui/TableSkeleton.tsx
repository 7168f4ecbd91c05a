import { Skeleton } from "@mantine/core";

/** Rows in grey while a list loads. */
export function TableSkeleton({ rows = 8, height = 34 }: { rows?: number; height?: number }) {
  return (
    <div role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <Skeleton key={row} height={height - 8} my={8} radius="sm" />
      ))}
    </div>
  );
}
