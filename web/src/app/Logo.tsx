/** A short waveform: what the speaker hears of their own voice. */
export function Logo() {
  return (
    <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden focusable="false">
      <g stroke="var(--st-accent)" strokeWidth="4" strokeLinecap="round">
        <path d="M5 13v6" />
        <path d="M12.3 6v20" />
        <path d="M19.6 10v12" />
        <path d="M27 14v4" />
      </g>
    </svg>
  );
}
