import createClient from "openapi-fetch";
import type { paths } from "./schema";

/** An answer of the server that is not a success, in the server's own words. */
export class ApiError extends Error {
  readonly status: number;
  readonly details: FieldError[];

  constructor(status: number, message: string, details: FieldError[] = []) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.details = details;
  }
}

export interface FieldError {
  field: string;
  message: string;
}

/** Speaks the paths of /openapi.json; what it is asked and what it answers is checked by the compiler. */
export const api = createClient<paths>({ baseUrl: window.location.origin });

interface Answer {
  data?: unknown;
  error?: unknown;
  response: Response;
}

/** Gives back what the server answered, or throws an ApiError. T names the shape, see types.ts. */
export async function answerOf<T>(pending: Promise<Answer>): Promise<T> {
  let answer: Answer;
  try {
    answer = await pending;
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw new ApiError(503, "The server did not answer. Is it running?");
  }
  const { data, error, response } = answer;
  if (response.ok && data !== undefined) return data as T;
  const told = (error as { error?: { message?: string; details?: FieldError[] } } | undefined)?.error;
  throw new ApiError(response.status, told?.message ?? `The server answered with status ${response.status}.`, told?.details ?? []);
}

/** Pages of a list are read until all of it is here, but no more than this many. */
const maxPages = 10;

export interface WholeList<T> {
  rows: T[];
  /** How many the server has; more than rows when there are too many to read. */
  total: number;
}

/** Reads a whole list that is shown as a whole, such as the spans of a call. */
export async function allPages<T>(
  page: (offset: number) => Promise<{ meta: { next: string | null; total_count: number }; objects: T[] }>,
): Promise<WholeList<T>> {
  const rows: T[] = [];
  let total = 0;
  for (let read = 0; read < maxPages; read++) {
    const { meta, objects } = await page(rows.length);
    rows.push(...objects);
    total = meta.total_count;
    if (meta.next === null || objects.length === 0) break;
  }
  return { rows, total };
}
