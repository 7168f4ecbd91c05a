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

export function splitMarks(markedText: string): { words: string; marked: boolean }[] {
  return markedText
    .split(/(<mark>.*?<\/mark>)/s)
    .filter((part) => part !== "")
    .map((part) => {
      const inner = /^<mark>(.*)<\/mark>$/s.exec(part)?.[1];
      return { words: unescape(inner ?? part), marked: inner !== undefined };
    });
}

const entities: Record<string, string> = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#34;": '"', "&#39;": "'", "&amp;": "&" };

function unescape(words: string): string {
  return words.replace(/&(?:lt|gt|quot|amp|#34|#39);/g, (entity) => entities[entity] ?? entity);
}
