import { useEffect, useRef } from "react";
import type { Playback } from "../playback/Playback";
import { toX, type Scale } from "./view";
import classes from "./Timeline.module.css";

/** The line at the playback position. Moved without rendering: it changes with every frame. */
export function Cursor({ playback, scale }: { playback: Playback; scale: Scale }) {
  const line = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = () => {
      const element = line.current;
      if (!element) return;
      const x = toX(scale, playback.snapshot().position);
      element.style.visibility = x < scale.left - 1 || x > scale.left + scale.width + 1 ? "hidden" : "visible";
      element.style.transform = `translateX(${x - 0.75}px)`;
    };
    place();
    return playback.subscribe(place);
  }, [playback, scale]);
  return <div ref={line} className={classes.cursor} data-testid="cursor" aria-hidden />;
}
