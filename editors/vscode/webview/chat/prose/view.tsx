import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import { LONGEST, Prose } from "./prose.js";

/** A text as markdown. What a person may do with it is heard by the list around it. */
export function Markdown({ text, streaming }: { text: string; streaming: boolean }): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const prose = useRef<Prose | undefined>(undefined);
  useLayoutEffect(() => {
    if (root.current) {
      prose.current ??= new Prose(root.current);
      prose.current.update(text, streaming);
    }
  }, [text, streaming]);
  return <div class="prose" ref={root} />;
}

/** Whether not all of a text is shown. */
export function isLong(text: string): boolean {
  return text.length > LONGEST;
}
