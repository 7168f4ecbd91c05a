import { useEffect } from "react";

interface ListKeys {
  count: number;
  selected: number;
  onSelect: (index: number) => void;
  onOpen: (index: number) => void;
  onSearch: () => void;
}

/** `/` searches, `j` and `k` walk the rows, Enter opens the marked one. */
export function useListKeys({ count, selected, onSelect, onOpen, onSearch }: ListKeys) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target;
      if (target instanceof HTMLElement && target.closest("input, textarea, select, [role=dialog], [role=listbox]")) return;
      if (event.key === "/") onSearch();
      else if (event.key === "j") onSelect(Math.min(count - 1, selected + 1));
      else if (event.key === "k") onSelect(Math.max(0, selected - 1));
      else if (event.key === "Enter" && selected >= 0 && !(target instanceof HTMLElement && target.closest("a, button"))) onOpen(selected);
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [count, selected, onSelect, onOpen, onSearch]);
}
