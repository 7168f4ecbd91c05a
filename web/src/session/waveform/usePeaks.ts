import { useEffect, useState } from "react";
import type { Playback } from "../playback/Playback";
import { chunkReader } from "./chunks";
import { computePeaks, type Peaks } from "./peaks";
import { loadPeaks, savePeaks } from "./peakStore";

/** The waveform of a recording, growing while it is read. Null before the first piece and without a recording. */
export function usePeaks(recordingURL: string | null, playback: Playback | null): { peaks: Peaks | null; failed: boolean } {
  const [peaks, setPeaks] = useState<Peaks | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    setPeaks(null);
    setFailed(false);
    if (!recordingURL || !playback) return;
    const abort = new AbortController();
    readPeaks(recordingURL, playback, abort.signal, setPeaks).catch(() => {
      if (!abort.signal.aborted) setFailed(true);
    });
    return () => abort.abort();
  }, [recordingURL, playback]);
  return { peaks, failed };
}

async function readPeaks(recordingURL: string, playback: Playback, signal: AbortSignal, show: (peaks: Peaks) => void) {
  // The ETag names the content: a recording that was replaced gets a waveform of its own.
  const head = await fetch(recordingURL, { method: "HEAD", signal });
  const etag = head.headers.get("etag");
  const key = `${recordingURL} ${etag ?? head.headers.get("content-length") ?? ""}`;
  const kept = await loadPeaks(key);
  if (signal.aborted) return;
  if (kept) show(kept);
  if (kept?.complete) return;
  const read = chunkReader(recordingURL, etag, signal);
  const readInTurn = async (start: number) => {
    await playback.served();
    return read(start);
  };
  await computePeaks(readInTurn, kept, {
    onPeaks: (peaks) => {
      if (!signal.aborted) show(peaks);
    },
    onProgress: (progress) => savePeaks(key, progress), // also when the page is left: the next visit goes on from here
  });
}
