/** What a peer sends where a list is due. Pure. */

/** The list, or an empty one where none was sent: a later server, or another program, may leave it out. */
export function list<T>(sent: readonly T[] | null | undefined): readonly T[] {
  return Array.isArray(sent) ? (sent as readonly T[]) : [];
}

/** `3 agents`, `1 agent`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
