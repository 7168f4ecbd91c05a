import { useEffect, useState } from "react";
import { computePeaks, type Peaks } from "./peaks";
import { loadPeaks, savePeaks } from "./peakStore";

/** The waveform of a recording, growing while it is read. Null before the first piece and without a recording. */
export function usePeaks(recordingURL: string | null): { peaks: Peaks | null; failed: boolean } {
  const [peaks, setPeaks] = useState<Peaks | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    setPeaks(null);
    setFailed(false);
    if (!recordingURL) return;
    const abort = new AbortController();
    readPeaks(recordingURL, abort.signal, setPeaks).catch(() => {
      if (!abort.signal.aborted) setFailed(true);
    });
    return () => abort.abort();
  }, [recordingURL]);
  return { peaks, failed };
}

async function readPeaks(recordingURL: string, signal: AbortSignal, show: (peaks: Peaks) => void) {
  // The ETag names the content: a recording that was replaced gets a waveform of its own.
  const head = await fetch(recordingURL, { method: "HEAD", signal });
  const key = `${recordingURL} ${head.headers.get("etag") ?? head.headers.get("content-length") ?? ""}`;
  const kept = await loadPeaks(key);
  if (signal.aborted) return;
  if (kept) return show(kept);
  const showIfWanted = (peaks: Peaks) => {
    if (!signal.aborted) show(peaks);
  };
  const peaks = await computePeaks(recordingURL, signal, showIfWanted);
  showIfWanted(peaks);
  await savePeaks(key, peaks);
}
