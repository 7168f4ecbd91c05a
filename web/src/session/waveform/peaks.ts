import { scanPages } from "./ogg";

/** Loudest sample in each step of 20 ms, 0 to 255, per channel. */
export interface Peaks {
  caller: Uint8Array;
  agent: Uint8Array;
  /** Length of the recording in seconds, as far as it was read. */
  seconds: number;
}

export const PEAKS_PER_SECOND = 50;

/** Opus always counts in 48 kHz. Decoding at 8 kHz is enough for loudness and keeps the memory small. */
const opusRate = 48_000;
const decodeRate = 8_000;
/** Seconds that are decoded at once: about 4 MB of samples, whatever the length of the call. */
const pieceSeconds = 60;

/**
 * Reads a recording piece by piece and reports the peaks as they grow. A two-hour call never sits in memory
 * uncompressed: whole pages of about a minute are decoded, measured and dropped.
 */
export async function computePeaks(
  recordingURL: string,
  signal: AbortSignal,
  onProgress: (peaks: Peaks) => void,
): Promise<Peaks> {
  const response = await fetch(recordingURL, { signal });
  if (!response.ok || !response.body) throw new Error(`The recording answered with status ${response.status}.`);
  const reader = response.body.getReader();
  const builder = new PeakBuilder();
  let pending: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  for (let finished = false; !finished; ) {
    const { done, value } = await reader.read();
    finished = done;
    if (value) pending = joined(pending, value);
    const used = await builder.take(pending, finished, () => onProgress(builder.peaks()));
    if (used > 0) pending = pending.slice(used);
  }
  return builder.peaks();
}

class PeakBuilder {
  private header: Uint8Array<ArrayBuffer> | null = null;
  private caller = new Uint8Array(PEAKS_PER_SECOND * 600);
  private agent = new Uint8Array(PEAKS_PER_SECOND * 600);
  private seconds = 0;
  private scanned = 0;
  private pieceStart = 0;

  /** Decodes the complete pieces in bytes and returns how many bytes it is done with. */
  async take(bytes: Uint8Array<ArrayBuffer>, final: boolean, onPiece: () => void): Promise<number> {
    const pages = scanPages(bytes, 0);
    let first = 0;
    if (!this.header) {
      // The first two pages describe the stream and go in front of every piece.
      if (pages.length < 2) {
        if (final) throw new Error("The recording is not an Ogg file.");
        return 0;
      }
      this.header = bytes.slice(pages[0]!.offset, pages[1]!.offset + pages[1]!.length);
      first = 2;
    }
    let used = first > 0 ? pages[1]!.offset + pages[1]!.length : 0;
    let from = used;
    for (let i = first; i < pages.length; i++) {
      const page = pages[i]!;
      const end = page.offset + page.length;
      const isLast = final && i === pages.length - 1;
      const ended = page.granule >= 0 && page.granule / opusRate - this.pieceStart >= pieceSeconds;
      if (!ended && !isLast) continue;
      await this.decode(bytes.subarray(from, end), page.granule >= 0 ? page.granule / opusRate : null);
      onPiece();
      from = end;
      used = end;
    }
    return used;
  }

  peaks(): Peaks {
    const count = Math.min(this.scanned, this.caller.length);
    return { caller: this.caller.slice(0, count), agent: this.agent.slice(0, count), seconds: this.seconds };
  }

  private async decode(pages: Uint8Array<ArrayBuffer>, endSeconds: number | null) {
    const piece = joined(this.header!, pages);
    const samples = await new OfflineAudioContext(2, 1, decodeRate).decodeAudioData(piece.buffer);
    const step = samples.sampleRate / PEAKS_PER_SECOND;
    const steps = Math.ceil(samples.length / step);
    const base = Math.round(this.pieceStart * PEAKS_PER_SECOND);
    this.reserve(base + steps);
    measure(samples.getChannelData(0), step, this.caller, base);
    measure(samples.getChannelData(Math.min(1, samples.numberOfChannels - 1)), step, this.agent, base);
    this.scanned = base + steps;
    this.pieceStart = endSeconds ?? this.pieceStart + samples.duration;
    this.seconds = this.pieceStart;
  }

  private reserve(count: number) {
    if (count <= this.caller.length) return;
    const size = Math.max(count, this.caller.length * 2);
    this.caller = grown(this.caller, size);
    this.agent = grown(this.agent, size);
  }
}

function measure(samples: Float32Array, step: number, into: Uint8Array, base: number) {
  for (let i = 0, index = base; i < samples.length; i += step, index++) {
    let loudest = 0;
    const end = Math.min(samples.length, i + step);
    for (let k = Math.floor(i); k < end; k++) loudest = Math.max(loudest, Math.abs(samples[k]!));
    into[index] = Math.min(255, Math.round(loudest * 255));
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

function grown(bytes: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const bigger = new Uint8Array(size);
  bigger.set(bytes);
  return bigger;
}
