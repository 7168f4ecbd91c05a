import { IconAlertTriangle, IconArrowRight, IconBolt, IconSettings, IconTool } from "@tabler/icons-react";
import { Link, useLocation } from "react-router";
import { formatClock, formatLatency, MISSING } from "../../format/units";
import type { Entry } from "../model/entries";
import type { Reply } from "../model/timeline";
import { LongText } from "./LongText";
import { ToolEntry } from "./ToolEntry";
import classes from "./Transcript.module.css";

interface TranscriptEntryProps {
  entry: Entry;
  /** Seconds on the axis, null when the item carries no time. */
  position: number | null;
  reply: Reply | null;
  current: boolean;
  /** Who wrote does not call. */
  isText: boolean;
  onSeek: (seconds: number) => void;
}

const speaker = { caller: "Caller", agent: "Agent", system: "System", tool: "Tool", handoff: "Handoff", config: "Configuration", other: "Item" };

/** Below this the recogniser was guessing, and the words should be read as such. */
const unsureBelow = 0.8;

export function TranscriptEntry({ entry, position, reply, current, isText, onSeek }: TranscriptEntryProps) {
  const location = useLocation();
  const anchor = entry.kind === "agent" && entry.turn !== null ? `turn-${entry.turn}` : undefined;
  return (
    <article className={classes.entry} data-kind={entry.kind} data-current={current || undefined} id={anchor} aria-current={current || undefined}>
      <div className={classes.time}>
        {position === null ? (
          <span>{MISSING}</span>
        ) : (
          <button type="button" className={classes.seek} onClick={() => onSeek(position)} aria-label={`Go to ${formatClock(position)}`}>
            {formatClock(position)}
          </button>
        )}
      </div>
      <div className={classes.body}>
        <header className={classes.who}>
          {entry.kind === "tool" && <IconTool size={13} stroke={1.8} aria-hidden />}
          {entry.kind === "handoff" && <IconArrowRight size={13} stroke={1.8} aria-hidden />}
          {entry.kind === "config" && <IconSettings size={13} stroke={1.8} aria-hidden />}
          <span className={classes.speaker}>{entry.kind === "other" ? entry.label : isText && entry.kind === "caller" ? "User" : speaker[entry.kind]}</span>
          {anchor && (
            <Link to={{ search: location.search, hash: `#${anchor}` }} replace className={classes.turn} preventScrollReset>
              turn {entry.turn}
            </Link>
          )}
          {reply && (
            <span className={classes.latency} data-slow={reply.slow || undefined}>
              {reply.slow && <IconAlertTriangle size={12} stroke={2} aria-hidden />}
              {reply.slow && "slow, "}
              {formatLatency(reply.perceivedMS)}
            </span>
          )}
          {entry.interrupted && (
            <span className={classes.interrupted}>
              <IconBolt size={12} stroke={2} aria-hidden />
              interrupted
            </span>
          )}
          {entry.confidence !== null && entry.confidence < unsureBelow && (
            <span className={classes.unsure}>unsure, {Math.round(entry.confidence * 100)} %</span>
          )}
        </header>
        {entry.kind === "tool" && entry.tool ? (
          <ToolEntry call={entry.tool} />
        ) : (
          <LongText words={entry.words || (entry.kind === "other" ? JSON.stringify(entry.raw) : MISSING)} />
        )}
      </div>
    </article>
  );
}
