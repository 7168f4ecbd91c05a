import { useEffect, useState, useSyncExternalStore } from "react";
import { Playback, type PlaybackState } from "./Playback";

/** The clock of the page, made anew for another recording. Null in the first render. */
export function usePlayback(recordingURL: string | null): Playback | null {
  const [playback, setPlayback] = useState<Playback | null>(null);
  useEffect(() => {
    const created = new Playback(recordingURL);
    setPlayback(created);
    return () => created.dispose();
  }, [recordingURL]);
  return playback;
}

/** One value of the playback; the component renders again only when that value changes. */
export function usePlaybackValue<T>(playback: Playback, select: (state: PlaybackState) => T): T {
  return useSyncExternalStore(playback.subscribe, () => select(playback.snapshot()));
}
