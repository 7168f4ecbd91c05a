import { useEffect, useState } from "react";

/** The current time in epoch ms, renewed every intervalMS, for texts like "4 min ago". */
export function useNow(intervalMS: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), intervalMS);
    return () => clearInterval(timer);
  }, [intervalMS]);
  return now;
}
