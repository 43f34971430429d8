/** What a peer sends where a list is due. Pure. */

/**
 * The list, or an empty one where none was sent: a later server, or another program, may leave it out. What is
 * nothing is no part of it.
 */
export function list<T>(sent: readonly T[] | null | undefined): readonly T[] {
  const all = Array.isArray(sent) ? (sent as readonly T[]) : [];
  const isNothing = (each: T): boolean => each === null || each === undefined;
  return all.some(isNothing) ? all.filter((each) => !isNothing(each)) : all;
}

/** `3 agents`, `1 agent`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
