import { readFileSync } from "node:fs";

/** The recording of the demo call: stereo Ogg Opus in packets of 20 ms, fifty to a page, as the SDK writes it. */
const source = readFileSync(new URL("../../testdata/fixtures/demo-call/recording.ogg", import.meta.url));

const packetsPerPage = 50;
const pageSamples = 48_000;
const at = { flags: 5, granule: 6, sequence: 18, checksum: 22, segments: 26, table: 27 };
const lastPage = 4;

/**
 * A recording of so many seconds, made of the busiest quarter of the demo call's seconds over and over: as large as a call
 * in which there is always somebody speaking, and an Ogg file without a fault.
 */
export function longRecording(seconds) {
  const [head, tags, ...rest] = pagesOf(source);
  const whole = rest.filter((page) => packetsIn(page) === packetsPerPage).toSorted((a, b) => b.length - a.length);
  const busy = whole.slice(0, whole.length / 4);
  const made = [head, tags];
  for (let second = 0; second < seconds; second++) {
    const page = Buffer.from(busy[second % busy.length]);
    page[at.flags] = second === seconds - 1 ? lastPage : 0;
    page.writeBigInt64LE(BigInt((second + 1) * pageSamples), at.granule);
    page.writeUInt32LE(second + 2, at.sequence);
    page.writeUInt32LE(0, at.checksum);
    page.writeUInt32LE(checksum(page), at.checksum);
    made.push(page);
  }
  return Buffer.concat(made);
}

function pagesOf(file) {
  const pages = [];
  for (let start = 0; start < file.length; ) {
    const table = file.subarray(start + at.table, start + at.table + file[start + at.segments]);
    const end = table.byteOffset - file.byteOffset + table.length + table.reduce((sum, length) => sum + length, 0);
    pages.push(file.subarray(start, end));
    start = end;
  }
  return pages;
}

/** A packet ends with the first of its segments that is not full. */
function packetsIn(page) {
  return page.subarray(at.table, at.table + page[at.segments]).filter((length) => length < 255).length;
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte << 24;
  for (let bit = 0; bit < 8; bit++) value = value & 0x80000000 ? (value << 1) ^ 0x04c11db7 : value << 1;
  return value;
});

/** Ogg's CRC-32: not reflected, without a final inversion. */
function checksum(page) {
  let crc = 0;
  for (const byte of page) crc = (crc << 8) ^ table[(crc >>> 24) ^ byte];
  return crc >>> 0;
}
