/** What is being typed after an `@`. Pure. */

export interface Mention {
  /** Where the `@` stands. */
  from: number;
  query: string;
}

/** The mention that the caret is at the end of; an `@` within a word is one of an address. */
export function mentionAt(text: string, caret: number): Mention | undefined {
  const before = text.slice(Math.max(0, caret - 300), caret);
  const match = /(?:^|[\s(["'])@([^\s@]*)$/.exec(before);
  const query = match?.[1];
  return query === undefined ? undefined : { from: caret - query.length - 1, query };
}

/** Puts a file's name in the place of what was typed; tells the text and where the caret is then. */
export function complete(
  text: string,
  mention: Mention,
  caret: number,
  label: string,
): { text: string; caret: number } {
  const put = `@${label} `;
  const rest = text.slice(caret).replace(/^ /, "");
  return { text: text.slice(0, mention.from) + put + rest, caret: mention.from + put.length };
}
