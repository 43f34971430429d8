/** What a board's page may say; anything else is nothing. */
import type { ColumnName, FromBoard } from "../shared/board";
import { VERBS } from "../shared/board";
import { SECTIONS } from "../model/tasks";

const PLAIN: ReadonlySet<unknown> = new Set(["ready", "add", "write", "chat", "refresh"]);

function isOneOf<T>(all: readonly T[], value: unknown): value is T {
  return (all as readonly unknown[]).includes(value);
}

const COLUMNS: readonly ColumnName[] = SECTIONS.map((section) => section.name);

export function fromBoard(value: unknown): FromBoard | undefined {
  if (typeof value !== "object" || value === null) {
    return undefined;
  }
  const { type, taskId, verb, to } = value as Record<string, unknown>;
  if (PLAIN.has(type)) {
    return { type } as FromBoard;
  } else if (typeof taskId !== "string") {
    return undefined;
  } else if (type === "show") {
    return { type, taskId };
  } else if (type === "do" && isOneOf(VERBS, verb)) {
    return { type, taskId, verb };
  } else if (type === "move" && isOneOf(COLUMNS, to)) {
    return { type, taskId, to };
  }
  return undefined;
}
