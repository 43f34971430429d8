/**
 * What passes between the extension and the page of a task board.
 *
 * The page holds nothing that counts: it draws what it is told, and says what the person does. All texts are
 * as a person may see them, each on one line; they are untrusted all the same.
 */

export type TaskVerb =
  "claim" | "start" | "complete" | "block" | "release" | "cancel" | "assign" | "spawn";

export const VERBS: readonly TaskVerb[] = [
  "claim",
  "start",
  "complete",
  "block",
  "release",
  "cancel",
  "assign",
  "spawn",
];

export type ColumnName = "ready" | "active" | "blocked" | "waiting" | "done" | "cancelled";

export interface TaskNote {
  readonly text: string;
  readonly tone: "plain" | "warning" | "error";
}

export interface TaskCard {
  readonly id: string;
  readonly title: string;
  /** Who has it. */
  readonly owner?: string;
  /** In progress, optional. */
  readonly facts: readonly string[];
  readonly notes: readonly TaskNote[];
  /** What may be done with it now, in the place of the root. */
  readonly verbs: readonly TaskVerb[];
}

export interface Column {
  readonly name: ColumnName;
  readonly title: string;
  /** All that are in it, also those that are not shown. */
  readonly count: number;
  readonly cards: readonly TaskCard[];
  /** So many before these are left out, and so many after them. */
  readonly before: number;
  readonly after: number;
}

export interface Board {
  readonly title: string;
  readonly counts: string;
  /** What is left to be done, and whether that is nothing. */
  readonly required?: { readonly text: string; readonly done: boolean };
  readonly members: readonly string[];
  readonly columns: readonly Column[];
  /** To the root, the newest first. */
  readonly messages: readonly string[];
  /** Nobody has begun a board here. */
  readonly empty: boolean;
  /** There are more tasks than the board shows. */
  readonly more?: string;
}

export type ToBoard =
  | {
      readonly type: "board";
      /** Absent until it is known. */
      readonly board?: Board;
      /** Why it may be old, or that nothing is there yet. */
      readonly notice?: string;
    }
  /** What came of something that the person did; one line. */
  | { readonly type: "said"; readonly text: string; readonly failed: boolean };

export type FromBoard =
  | { readonly type: "ready" }
  | { readonly type: "do"; readonly taskId: string; readonly verb: TaskVerb }
  /** A card was put into another column. */
  | { readonly type: "move"; readonly taskId: string; readonly to: ColumnName }
  | { readonly type: "show"; readonly taskId: string }
  | { readonly type: "add" }
  | { readonly type: "write" }
  | { readonly type: "chat" }
  | { readonly type: "refresh" };
