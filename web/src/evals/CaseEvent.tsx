import type { LooseRecord } from "../api/types";
import { formatLatency } from "../format/units";
import { contentText, record, text, withoutMarkup } from "../session/model/loose";
import { StatusBadge } from "../ui/StatusBadge";
import classes from "./Evals.module.css";

/** One captured event of a case; a type this page does not know is shown as it was sent. */
export function CaseEvent({ event }: { event: LooseRecord }) {
  const type = text(event.type) ?? "event";
  switch (type) {
    case "message": {
      const role = text(event.role) ?? "message";
      const ttft = record(event.metrics)?.llm_node_ttft;
      return (
        <div className={classes.event}>
          <div className={classes.eventWho} data-role={role}>
            <span>{role === "assistant" ? "Agent" : role === "user" ? "User" : role}</span>
            {typeof ttft === "number" && <span className="num">{formatLatency(ttft * 1000)} to first token</span>}
            {event.interrupted === true && <StatusBadge word="interrupted" tone="warn" />}
          </div>
          <p className={classes.eventText} dir="auto">
            {withoutMarkup(contentText(event.content))}
          </p>
        </div>
      );
    }
    case "function_call":
      return <Line who={`Tool call ${text(event.name) ?? ""}`} words={shown(event.arguments)} />;
    case "function_call_output":
      return <Line who={event.is_error === true ? "✕ Tool error" : "Tool result"} words={shown(event.output)} />;
    case "agent_handoff":
      return (
        <Line
          who="Handoff"
          words={`${text(event.from_agent) ?? text(event.old_agent_id) ?? "–"} → ${text(event.to_agent) ?? text(event.new_agent_id) ?? "–"}`}
        />
      );
    default: {
      const { type: _type, ...rest } = event;
      return <Line who={type} words={shown(rest)} />;
    }
  }
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function Line({ who, words }: { who: string; words: string }) {
  return (
    <div className={classes.event}>
      <div className={classes.eventWho}>
        <span>{who}</span>
      </div>
      <p className={classes.eventText} data-mono>
        {words}
      </p>
    </div>
  );
}
