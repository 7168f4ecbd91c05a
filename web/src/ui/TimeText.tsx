import { Tooltip } from "@mantine/core";
import { formatLocal, formatUTC } from "../format/time";
import { MISSING } from "../format/units";

/** A time in the reader's own zone; UTC on hover and focus. */
export function TimeText({ iso, seconds = true }: { iso: string | null | undefined; seconds?: boolean }) {
  if (!iso) return <span>{MISSING}</span>;
  return (
    <Tooltip label={formatUTC(iso)}>
      <time dateTime={iso} className="num">
        {formatLocal(iso, seconds)}
      </time>
    </Tooltip>
  );
}
