import { useEffect } from "react";

/** Names the browser tab after the page. */
export function usePageTitle(title: string) {
  useEffect(() => {
    document.title = `${title} · Sidetone`;
  }, [title]);
}
