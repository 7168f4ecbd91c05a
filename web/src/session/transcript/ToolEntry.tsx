import type { ToolCall } from "../../api/types";
import { MISSING } from "../../format/units";
import { LongText } from "./LongText";
import classes from "./Transcript.module.css";

/** A call of a tool with what it was given and what it gave back. */
export function ToolEntry({ call }: { call: ToolCall }) {
  return (
    <div className={classes.tool}>
      <div className={classes.callLine}>
        <span className={classes.toolName}>{call.name}</span>
        <span className={classes.arguments}>{argumentsText(call.arguments)}</span>
      </div>
      <div className={classes.result} data-error={call.is_error || undefined}>
        <span className={classes.resultLabel}>{call.is_error ? "✕ error" : "→"}</span>
        <div className={classes.resultText}>
          <LongText words={call.output ?? `${MISSING} no result`} />
        </div>
      </div>
    </div>
  );
}

/** `order_id: "44712", reason: "late"` reads better than JSON with its braces. */
function argumentsText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  return Object.entries(value)
    .map(([name, argument]) => `${name}: ${JSON.stringify(argument)}`)
    .join(", ");
}
