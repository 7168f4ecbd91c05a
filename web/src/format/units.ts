/** What stands for a value that was not measured. Never 0. */
export const MISSING = "–";

/** A reply slower than this is called slow: people start to talk again, or wonder whether they were heard. */
export const SLOW_REPLY_MS = 2_500;

type Maybe = number | null | undefined;

function present(value: Maybe): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

const integer = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A count with thousands separators. */
export function formatCount(value: Maybe): string {
  return present(value) ? integer.format(value) : MISSING;
}

/** A latency: "412 ms" below one second, "1.96 s" above. */
export function formatLatency(ms: Maybe): string {
  if (!present(ms)) return MISSING;
  if (Math.abs(ms) < 1000) return `${Math.round(ms)} ms`;
  if (Math.abs(ms) < 100_000) return `${(ms / 1000).toFixed(2)} s`;
  return formatDuration(ms);
}

/** The length of a call: "8.2 s", "1:04 min", "2:03:10 h". */
export function formatDuration(ms: Maybe): string {
  if (!present(ms) || ms < 0) return MISSING;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 3_600_000 ? `${formatClock(ms / 1000)} min` : `${formatClock(ms / 1000)} h`;
}

/** A position in a call: "0:07", "12:04", "1:02:33". With digits, tenths or more: "0:07.4". */
export function formatClock(seconds: number, digits = 0): string {
  const sign = seconds < 0 ? "-" : "";
  const scale = 10 ** digits;
  const total = digits > 0 ? Math.floor(Math.abs(seconds) * scale + 1e-6) / scale : Math.floor(Math.abs(seconds) + 1e-6);
  const hours = Math.floor(total / 3600);
  const minutes = Math.floor((total % 3600) / 60);
  const rest = (total % 60).toFixed(digits).padStart(digits > 0 ? 3 + digits : 2, "0");
  return hours > 0 ? `${sign}${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${sign}${minutes}:${rest}`;
}

/** A fraction 0 to 1 as percent, without digits it does not have: "25 %", "33.3 %". */
export function formatRate(fraction: Maybe): string {
  if (!present(fraction)) return MISSING;
  const percent = fraction * 100;
  return `${Number.isInteger(Math.round(percent * 10) / 10) ? percent.toFixed(0) : percent.toFixed(1)} %`;
}

/** A cost in US dollars; small ones keep two significant digits. */
export function formatCost(usd: Maybe): string {
  if (!present(usd)) return MISSING;
  return usd !== 0 && usd < 0.01 ? `$${usd.toPrecision(2)}` : `$${usd.toFixed(2)}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
