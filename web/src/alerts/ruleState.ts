import type { AlertRule } from "../api/types";
import { formatAgo, parseTime } from "../format/time";
import type { Tone } from "../ui/StatusBadge";

export interface RuleState {
  word: string;
  tone: Tone;
  detail: string;
}

const reasons: Record<string, RuleState> = {
  no_data: { word: "no data", tone: "quiet", detail: "nothing was observed in the window" },
  too_few_samples: { word: "too few samples", tone: "quiet", detail: "the window holds fewer observations than the rule asks for" },
  below_threshold: { word: "ok", tone: "good", detail: "not above the threshold" },
  error: { word: "error", tone: "bad", detail: "the last evaluation failed; see the server's log" },
};

/** What a rule is doing now. A suppressed rule that is still above its threshold is still firing. */
export function ruleState(rule: AlertRule, now: number): RuleState {
  if (!rule.enabled) return { word: "disabled", tone: "quiet", detail: "never evaluated" };
  const until = parseTime(rule.suppressed_until);
  if (until !== null && until > now) {
    const again = `may fire again ${formatAgo(rule.suppressed_until, now)}`;
    const above = rule.last_value !== null && rule.last_value > rule.threshold_value;
    return above ? { word: "firing", tone: "bad", detail: again } : { word: "suppressed", tone: "warn", detail: again };
  }
  if (rule.last_reason === null && rule.last_evaluated_at === null) {
    return { word: "not evaluated yet", tone: "quiet", detail: "the sweeper looks every 30 s" };
  }
  return reasons[rule.last_reason ?? "below_threshold"] ?? { word: rule.last_reason ?? "ok", tone: "quiet", detail: "" };
}
