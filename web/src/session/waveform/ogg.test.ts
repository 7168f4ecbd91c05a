import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { scanPages } from "./ogg";

const recording = new Uint8Array(readFileSync(new URL("../../../../testdata/fixtures/demo-call/recording.ogg", import.meta.url)));

describe("the pages of a recording", () => {
  it("follow each other without a gap to the end of the file", () => {
    const pages = scanPages(recording, 0);
    let next = 0;
    for (const page of pages) {
      expect(page.offset).toBe(next);
      next = page.offset + page.length;
    }
    expect(next).toBe(recording.length);
    expect(pages.at(-1)!.granule / 48_000).toBeGreaterThan(40);
  });

  it("are found again behind rubbish, and a page that is cut off waits for the rest", () => {
    const whole = scanPages(recording, 0);
    const third = whole[2]!;
    const dirty = new Uint8Array(7 + third.length);
    dirty.set([1, 2, 79, 103, 103, 9, 9]);
    dirty.set(recording.subarray(third.offset, third.offset + third.length), 7);
    expect(scanPages(dirty, 0)).toMatchObject([{ offset: 7, length: third.length }]);
    expect(scanPages(recording.subarray(0, third.offset + third.length - 1), 0)).toHaveLength(2);
    expect(scanPages(new Uint8Array(0), 0)).toEqual([]);
  });
});
