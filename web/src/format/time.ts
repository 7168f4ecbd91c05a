import { MISSING } from "./units";

const day = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });
const dayWithYear = new Intl.DateTimeFormat("en", { year: "numeric", month: "short", day: "numeric" });
const clock = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const clockSeconds = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** Epoch milliseconds of an RFC 3339 time, or null. */
export function parseTime(text: unknown): number | null {
  if (typeof text !== "string") return null;
  const ms = Date.parse(text);
  return Number.isFinite(ms) ? ms : null;
}

/** Local time: "Nov 21, 06:12:31"; the year only when it is not this one. */
export function formatLocal(iso: string | null | undefined, withSeconds = true): string {
  const ms = parseTime(iso);
  if (ms === null) return MISSING;
  const date = new Date(ms);
  const sameYear = date.getFullYear() === new Date().getFullYear();
  return `${(sameYear ? day : dayWithYear).format(date)}, ${(withSeconds ? clockSeconds : clock).format(date)}`;
}

/** UTC with milliseconds: "2026-11-21 05:20:00.123 UTC". */
export function formatUTC(iso: string | null | undefined): string {
  const ms = parseTime(iso);
  return ms === null ? MISSING : `${new Date(ms).toISOString().replace("T", " ").replace("Z", "")} UTC`;
}

/** How long ago, in the largest unit that fits: "now", "4 min ago", "3 d ago"; "in 12 min" for the future. */
export function formatAgo(iso: string | null | undefined, now: number): string {
  const ms = parseTime(iso);
  if (ms === null) return MISSING;
  const seconds = Math.round(Math.abs(now - ms) / 1000);
  if (seconds < 10) return "now";
  let text = `${seconds} s`;
  if (seconds >= 86_400) text = `${Math.floor(seconds / 86_400)} d`;
  else if (seconds >= 3_600) text = `${Math.floor(seconds / 3_600)} h`;
  else if (seconds >= 60) text = `${Math.floor(seconds / 60)} min`;
  return ms <= now ? `${text} ago` : `in ${text}`;
}
