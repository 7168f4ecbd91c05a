import { useState } from "react";
import classes from "./Transcript.module.css";

/** More than this is folded: a prompt of 20,000 characters should not hide the call. */
const foldFrom = 1_200;
const folded = 700;

/** Text as text, in its own direction, folded when it is very long. */
export function LongText({ words }: { words: string }) {
  const [open, setOpen] = useState(false);
  const long = words.length > foldFrom;
  return (
    <>
      <p className={classes.words} dir="auto">
        {long && !open ? `${words.slice(0, folded)}…` : words}
      </p>
      {long && (
        <button type="button" className={classes.more} onClick={() => setOpen(!open)} aria-expanded={open}>
          {open ? "Show less" : `Show all ${words.length.toLocaleString("en")} characters`}
        </button>
      )}
    </>
  );
}
