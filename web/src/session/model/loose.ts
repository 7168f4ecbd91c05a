/** Readers for records that come from outside as they are: a wrong type reads as missing, never as an error. */

import type { LooseRecord } from "../../api/types";

export function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

export function record(value: unknown): LooseRecord | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as LooseRecord) : null;
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Above this a number of seconds since 1970 would be in the year 5138: it is milliseconds. */
const millisecondsFrom = 1e11;

/** Epoch milliseconds of a time: RFC 3339 text, or epoch seconds or milliseconds told apart by magnitude. */
export function epochMS(value: unknown): number | null {
  let number = typeof value === "number" ? value : NaN;
  if (typeof value === "string" && value !== "") {
    number = Number(value);
    if (!Number.isFinite(number)) number = Date.parse(value) || NaN;
  }
  if (!Number.isFinite(number) || number <= 0) return null;
  return number >= millisecondsFrom ? number : number * 1000;
}

/** The words of a message: its text parts; a part that is not text is named by its type. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content)
    .map((part) => {
      if (typeof part === "string") return part;
      const fields = record(part);
      return text(fields?.text) ?? text(fields?.transcript) ?? (fields ? `[${text(fields.type) ?? "content"}]` : "");
    })
    .filter((part) => part !== "")
    .join("\n");
}

/** Display markup that speech models are given inside the text, such as <expr .../>, is not what was said. */
export function withoutMarkup(words: string): string {
  return words.replace(/<\/?expr\b[^>]*>/g, "").trim();
}

/** A value as short text for a label. */
export function brief(value: unknown, max = 160): string {
  const full = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return full.length > max ? `${full.slice(0, max - 1)}…` : full;
}
