import {
  IconAlertTriangle,
  IconCheck,
  IconCircleDashed,
  IconHelp,
  IconMinus,
  IconX,
} from "@tabler/icons-react";
import classes from "./StatusBadge.module.css";

export type Tone = "good" | "bad" | "warn" | "live" | "quiet";

const toneIcon = { good: IconCheck, bad: IconX, warn: IconAlertTriangle, live: IconCircleDashed, quiet: IconMinus };

const toneOfWord: Record<string, Tone> = {
  success: "good",
  pass: "good",
  passed: "good",
  completed: "good",
  delivered: "good",
  ok: "good",
  fail: "bad",
  failed: "bad",
  failure: "bad",
  error: "bad",
  errored: "bad",
  cancelled: "quiet",
  skipped: "quiet",
  queued: "quiet",
  maybe: "warn",
  pending: "warn",
  running: "live",
  active: "live",
};

/** The tone of an outcome, verdict or status; a vendor prefix ("acme.fail") does not hide what it means. */
export function toneOf(word: string): Tone {
  const lower = word.toLowerCase();
  return toneOfWord[lower] ?? toneOfWord[lower.slice(lower.indexOf(".") + 1)] ?? "quiet";
}

interface StatusBadgeProps {
  word: string;
  tone?: Tone;
}

/** A word with a sign in front of it: the colour only repeats what both say. */
export function StatusBadge({ word, tone = toneOf(word) }: StatusBadgeProps) {
  const Icon = word.toLowerCase() === "maybe" ? IconHelp : toneIcon[tone];
  return (
    <span className={classes.badge} data-tone={tone}>
      <Icon size={13} stroke={2.2} aria-hidden />
      {word}
    </span>
  );
}
