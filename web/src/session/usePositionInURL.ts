import { useEffect, useRef, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import type { Timeline } from "./model/timeline";
import type { Playback } from "./playback/Playback";

/** After a seek the address is renewed once the position has rested this long, in ms. */
const restMS = 400;

/**
 * Keeps the position in the address. On arrival `?t=12.4` seeks to seconds of the call and `#turn-5` to the start of a
 * turn; later seeks write `?t=` back, so that the address can be passed on. Answers true once the arrival is done.
 */
export function usePositionInURL(playback: Playback | null, timeline: Timeline): boolean {
  const location = useLocation();
  const navigate = useNavigate();
  const [placedFor, setPlacedFor] = useState<Playback | null>(null);
  const followed = useRef<string | null>(null);
  const written = useRef<string | null>(null);
  const linked = useRef<number | null>(null); // the position a link asked for: its address stays as it is

  useEffect(() => {
    if (!playback || timeline.originMS === null) return;
    const address = location.search + location.hash;
    if (followed.current === address && placedFor === playback) return;
    followed.current = address;
    if (address !== written.current) {
      const target = targetOf(location.search, location.hash, timeline);
      if (target !== null) {
        linked.current = Math.min(Math.max(0, target), timeline.duration);
        playback.seek(target);
      }
    }
    setPlacedFor(playback);
  }, [playback, timeline, location.search, location.hash, placedFor]);

  useEffect(() => {
    if (!playback || placedFor !== playback) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = playback.snapshot().position;
    const unsubscribe = playback.subscribe(() => {
      const { position, playing } = playback.snapshot();
      if (playing || position === last) return;
      last = position;
      clearTimeout(timer);
      if (linked.current !== null && Math.abs(position - linked.current) < 0.1) return;
      linked.current = null;
      timer = setTimeout(() => {
        const params = new URLSearchParams(location.search);
        params.set("t", position.toFixed(1));
        written.current = `?${params}`;
        void navigate({ search: `?${params}` }, { replace: true, preventScrollReset: true });
      }, restMS);
    });
    return () => {
      clearTimeout(timer);
      unsubscribe();
    };
  }, [playback, placedFor, location.search, navigate]);

  return playback !== null && placedFor === playback;
}

function targetOf(search: string, hash: string, timeline: Timeline): number | null {
  const turn = /^#turn-(\d+)$/.exec(hash)?.[1];
  if (turn !== undefined) return turnStart(Number(turn), timeline);
  const t = new URLSearchParams(search).get("t");
  const seconds = t === null || t === "" ? NaN : Number(t);
  return Number.isFinite(seconds) ? seconds : null;
}

/** A turn starts with the caller's words, or with the agent's when nobody asked. */
function turnStart(turn: number, timeline: Timeline): number | null {
  const starts = timeline.speech.filter((speech) => speech.turn === turn).map((speech) => speech.start);
  return starts.length > 0 ? Math.min(...starts) : null;
}
