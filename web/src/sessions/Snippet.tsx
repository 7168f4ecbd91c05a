import { splitMarks } from "./splitMarks";
import classes from "./SessionTable.module.css";

/**
 * The passage that matched a search. The server escapes it and puts <mark> around the matches; here it is taken apart
 * and shown as text again, so that nothing a caller said is ever read as HTML.
 */
export function Snippet({ markedText }: { markedText: string }) {
  return (
    <div className={classes.snippet} dir="auto">
      {splitMarks(markedText).map((part, index) => (part.marked ? <mark key={index}>{part.words}</mark> : <span key={index}>{part.words}</span>))}
    </div>
  );
}
