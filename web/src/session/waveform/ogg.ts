/** Reading the frame of an Ogg Opus file: just enough to cut it into pieces that decode on their own. */

const pageHeaderBytes = 27;
const capture = 0x4f676753; // "OggS"

export interface OggPage {
  offset: number;
  length: number;
  /** End of the page in samples at 48 kHz since the start of the stream; -1 when no packet ends in it. */
  granule: number;
}

/** Finds the whole pages in bytes, starting at offset from. Rubbish between pages is skipped. */
export function scanPages(bytes: Uint8Array, from: number): OggPage[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const pages: OggPage[] = [];
  let offset = from;
  while (offset + pageHeaderBytes <= bytes.length) {
    if (view.getUint32(offset) !== capture) {
      offset++;
      continue;
    }
    const segments = bytes[offset + 26]!;
    const tableEnd = offset + pageHeaderBytes + segments;
    if (tableEnd > bytes.length) break;
    let length = pageHeaderBytes + segments;
    for (let i = offset + pageHeaderBytes; i < tableEnd; i++) length += bytes[i]!;
    if (offset + length > bytes.length) break;
    const low = view.getUint32(offset + 6, true);
    const high = view.getInt32(offset + 10, true);
    pages.push({ offset, length, granule: high < 0 ? -1 : high * 2 ** 32 + low });
    offset += length;
  }
  return pages;
}
