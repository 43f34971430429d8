/** One task of a board, with all that is known of it. Pure. */
import type { GroupTask } from "@callboard/protocol";

import { list } from "./loose";
import { memberName, sectionOf, statusWords, taskDetails, taskOf, type BoardView } from "./tasks";
import { oneLine, visible } from "./text";

export interface Fact {
  /** Empty where it goes on with the one before. */
  readonly name: string;
  readonly value: string;
}

function dependency(view: BoardView, id: string): string {
  const other = taskOf(view, id);
  return other ? `${oneLine(other.title, 80)} (${statusWords(other.status)})` : oneLine(id, 60);
}

export function taskCard(view: BoardView, task: GroupTask): Fact[] {
  const facts: Fact[] = [];
  function fact(name: string, ...values: readonly unknown[]): void {
    let first = true;
    for (const value of values) {
      const text = visible(value).trimEnd();
      if (text.trim() !== "") {
        facts.push({ name: first ? name : "", value: text });
        first = false;
      }
    }
  }
  const section = sectionOf(task);
  const open = section === "ready" || section === "waiting";
  fact("status", open ? section : statusWords(task.status));
  fact("owner", task.assignee == null ? "nobody" : memberName(view, task.assignee));
  fact("required", task.required === false ? "no: the work is complete without it, too" : "yes");
  fact("about", task.description);
  fact("after", ...list(task.dependencies).map((id) => dependency(view, id)));
  if (section === "waiting" || section === "active") {
    fact("", ...taskDetails(view, task).map((detail) => detail.text));
  }
  fact("expects", ...list(task.expectedPaths));
  fact("reason", task.reason);
  fact("summary", task.summary);
  fact("finding", ...list(task.findings));
  fact("changed", ...list(task.touchedFiles));
  fact("created", `${oneLine(task.createdAt, 40)} by ${memberName(view, task.createdBy)}`);
  fact("id", task.taskId);
  return facts;
}

/** The card as text, its values below each other. */
export function taskText(view: BoardView, task: GroupTask): string {
  const lines = taskCard(view, task).flatMap(({ name, value }) =>
    value.split("\n").map((line, at) => `${(at === 0 ? name : "").padEnd(10)}${line}`),
  );
  return [oneLine(task.title), ...lines].join("\n");
}
