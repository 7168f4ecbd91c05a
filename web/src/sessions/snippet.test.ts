import { describe, expect, it } from "vitest";
import { splitMarks } from "./splitMarks";

describe("a passage that matched", () => {
  it("comes apart at its marks and is text again", () => {
    expect(splitMarks("a &lt;b&gt; <mark>re&amp;fund</mark> now")).toEqual([
      { words: "a <b> ", marked: false },
      { words: "re&fund", marked: true },
      { words: " now", marked: false },
    ]);
  });

  it("unescapes once: what a caller spelled out stays spelled out", () => {
    expect(splitMarks("&amp;lt;script&amp;gt;")).toEqual([{ words: "&lt;script&gt;", marked: false }]);
  });
});
