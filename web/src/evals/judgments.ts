import type { LooseRecord } from "../api/types";
import { text } from "../session/model/loose";

/** What a judgment is about: the judge's name where it has one, else the intent it judged. */
export function judgmentName(judgment: LooseRecord): string {
  return text(judgment.judge_name) ?? text(judgment.name) ?? text(judgment.intent) ?? "judge";
}

export function judgmentVerdict(judgment: LooseRecord): string {
  return text(judgment.verdict) ?? "no verdict";
}
