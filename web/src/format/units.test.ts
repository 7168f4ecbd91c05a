import { describe, expect, it } from "vitest";
import { formatClock, formatCost, formatCount, formatDuration, formatLatency, formatRate } from "./units";

describe("a missing value", () => {
  it("is a dash and never 0", () => {
    for (const format of [formatCount, formatLatency, formatDuration, formatRate, formatCost]) {
      expect(format(null)).toBe("–");
      expect(format(undefined)).toBe("–");
      expect(format(NaN)).toBe("–");
    }
    expect(formatLatency(0)).toBe("0 ms");
    expect(formatRate(0)).toBe("0 %");
  });
});

describe("units", () => {
  it("change with the size of the value", () => {
    expect(formatLatency(999.4)).toBe("999 ms");
    expect(formatLatency(1958)).toBe("1.96 s");
    expect(formatDuration(48_076)).toBe("48.1 s");
    expect(formatDuration(64_000)).toBe("1:04 min");
    expect(formatDuration(7_390_000)).toBe("2:03:10 h");
    expect(formatRate(1 / 3)).toBe("33.3 %");
    expect(formatRate(0.3)).toBe("30 %");
    expect(formatCost(0.0016)).toBe("$0.0016");
    expect(formatCost(1.5)).toBe("$1.50");
  });

  it("tell a position to the tenth without rounding up", () => {
    expect(formatClock(59.99, 1)).toBe("0:59.9");
    expect(formatClock(12.4, 1)).toBe("0:12.4");
    expect(formatClock(3661)).toBe("1:01:01");
    expect(formatClock(-2)).toBe("-0:02");
  });
});
