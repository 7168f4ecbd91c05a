/** Bytes of a recording that are asked for at once: about two minutes of a call. */
const chunkBytes = 512 << 10;

export interface Chunk {
  bytes: Uint8Array<ArrayBuffer>;
  /** Whether the recording ends with this chunk. */
  last: boolean;
}

export type ChunkReader = (start: number) => Promise<Chunk>;

/**
 * Reads a recording by ranges, so that as much is on the way as is about to be measured and the player gets the rest of
 * the line. The chunks are kept nowhere: the player's own requests would wait for the browser's cache while these fill it.
 */
export function chunkReader(recordingURL: string, etag: string | null, signal: AbortSignal): ChunkReader {
  return async (start) => {
    const headers = { Range: `bytes=${start}-${start + chunkBytes - 1}` };
    const response = await fetch(recordingURL, { headers, cache: "no-store", signal });
    if (!response.ok) throw new Error(`The recording answered with status ${response.status}.`);
    const now = response.headers.get("etag");
    if (etag !== null && now !== null && now !== etag) throw new Error("The recording was replaced while it was read.");
    const bytes = new Uint8Array(await response.arrayBuffer());
    // A store that knows no ranges answers the whole recording.
    if (response.status !== 206) return { bytes: bytes.slice(start), last: true };
    const size = Number(/\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1] ?? NaN);
    return { bytes, last: bytes.length === 0 || start + bytes.length >= size || (Number.isNaN(size) && bytes.length < chunkBytes) };
  };
}
