import { useEffect } from "react";
import type { Playback } from "./Playback";

/** Seconds an arrow key moves, and with Shift held. */
const step = { plain: 5, fine: 1 };

/** Space, arrows and j/k anywhere on the page, except where a key means something else already. */
export function usePlayerKeys(playback: Playback | null, onTurn: (direction: 1 | -1) => void) {
  useEffect(() => {
    if (!playback) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (!(event.target instanceof HTMLElement) || takesKeys(event.target, event.key)) return;
      const seconds = event.shiftKey ? step.fine : step.plain;
      if (event.key === " ") playback.toggle();
      else if (event.key === "ArrowLeft") playback.seek(playback.snapshot().position - seconds);
      else if (event.key === "ArrowRight") playback.seek(playback.snapshot().position + seconds);
      else if (event.key === "j") onTurn(1);
      else if (event.key === "k") onTurn(-1);
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [playback, onTurn]);
}

function takesKeys(target: HTMLElement, key: string): boolean {
  if (target.closest("input:not([type=checkbox]), textarea, select, [contenteditable], [role=menu], [role=tablist], [role=dialog]")) return true;
  return key === " " && target.closest("button, a, input, summary") !== null;
}
