/** Takes a passage of the server apart: HTML-escaped words with <mark> around what matched become plain words again. */
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
