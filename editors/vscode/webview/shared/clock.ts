/** One clock for all that shows how long it runs. It ticks only while something runs and the page is seen. */
import { useEffect, useState } from "preact/hooks";

const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  for (const watcher of watchers) {
    watcher();
  }
}

function settle(): void {
  const wanted = watchers.size > 0 && document.visibilityState !== "hidden";
  if (wanted && timer === undefined) {
    timer = setInterval(tick, 1000);
  } else if (!wanted && timer !== undefined) {
    clearInterval(timer);
    timer = undefined;
  }
}

document.addEventListener("visibilitychange", () => {
  settle();
  if (document.visibilityState !== "hidden") {
    tick();
  }
});

/** The time in ms, which goes on while `active`. */
export function useNow(active: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!active) {
      return undefined;
    }
    const watcher = (): void => {
      setNow(Date.now());
    };
    watcher();
    watchers.add(watcher);
    settle();
    return () => {
      watchers.delete(watcher);
      settle();
    };
  }, [active]);
  return now;
}
