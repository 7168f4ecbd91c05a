import type { ChunkReader } from "./chunks";
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

/** How far a recording was measured, with what is needed to go on from there later. */
export interface PeakProgress extends Peaks {
  /** The pages that describe the stream, null before they were read. */
  header: Uint8Array<ArrayBuffer> | null;
  /** The first byte that was not measured yet. */
  next: number;
  complete: boolean;
}

interface PeakListeners {
  /** After every piece. */
  onPeaks: (peaks: Peaks) => void;
  /** After every chunk: from here it can be gone on with. */
  onProgress: (progress: PeakProgress) => Promise<void>;
}

/**
 * Reads a recording chunk by chunk and reports the peaks as they grow. A two-hour call never sits in memory, neither
 * compressed nor uncompressed: the next chunk is asked for when the last one is measured and dropped.
 */
export async function computePeaks(readChunk: ChunkReader, begun: PeakProgress | null, listeners: PeakListeners): Promise<Peaks> {
  const builder = new PeakBuilder(begun);
  let pending: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  let position = begun?.next ?? 0;
  for (let complete = false; !complete; ) {
    const { bytes, last } = await readChunk(position);
    complete = last;
    position += bytes.length;
    pending = joined(pending, bytes);
    const used = await builder.take(pending, complete, () => listeners.onPeaks(builder.peaks()));
    pending = pending.slice(used);
    await listeners.onProgress({ ...builder.peaks(), header: builder.header, next: position - pending.length, complete });
  }
  return builder.peaks();
}

class PeakBuilder {
  header: Uint8Array<ArrayBuffer> | null;
  private caller: Uint8Array;
  private agent: Uint8Array;
  private scanned: number;
  private pieceStart: number;

  constructor(begun: PeakProgress | null) {
    this.header = begun?.header ?? null;
    this.scanned = begun?.caller.length ?? 0;
    this.pieceStart = begun?.seconds ?? 0;
    const room = Math.max(PEAKS_PER_SECOND * 600, this.scanned);
    this.caller = grown(begun?.caller ?? new Uint8Array(0), room);
    this.agent = grown(begun?.agent ?? new Uint8Array(0), room);
  }

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
    return { caller: this.caller.slice(0, count), agent: this.agent.slice(0, count), seconds: this.pieceStart };
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
