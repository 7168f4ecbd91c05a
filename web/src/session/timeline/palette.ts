/** The colours of the canvas, read from the CSS tokens so that both schemes stay in one place. */
export interface Palette {
  accent: string;
  accentSoft: string;
  caller: string;
  callerSoft: string;
  bad: string;
  badSoft: string;
  warn: string;
  warnSoft: string;
  text: string;
  dim: string;
  line: string;
  lineSoft: string;
  panel: string;
  segment: { wait: string; stt: string; hook: string; llm: string; tts: string; rest: string };
}

export function readPalette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(`--st-${name}`).trim();
  return {
    accent: token("accent"),
    accentSoft: token("accent-soft"),
    caller: token("caller"),
    callerSoft: token("caller-soft"),
    bad: token("bad"),
    badSoft: token("bad-soft"),
    warn: token("warn"),
    warnSoft: token("warn-soft"),
    text: token("text"),
    dim: token("dim"),
    line: token("line"),
    lineSoft: token("line-soft"),
    panel: token("panel"),
    segment: {
      wait: token("lat-wait"),
      stt: token("lat-stt"),
      hook: token("lat-hook"),
      llm: token("lat-llm"),
      tts: token("lat-tts"),
      rest: token("lat-rest"),
    },
  };
}
