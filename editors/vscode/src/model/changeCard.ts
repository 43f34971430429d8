/** A file that was changed, or would be: its name, its counts and some of its diff. */
import type { FileChange } from "@callboard/protocol";
import type { ChangeCard } from "../shared/chat";
import type { Cut } from "./excerpt";
import { excerpt } from "./excerpt";
import { fileLink, pathLabel } from "./files";
import { asText, oneLine } from "./text";

/** The lines that name the files, which the card does already. */
function isName(line: string, number: number): boolean {
  return number < 3 && (line.startsWith("--- ") || line.startsWith("+++ "));
}

function counted(lines: unknown): number {
  return typeof lines === "number" && Number.isFinite(lines) ? lines : 0;
}

export function changeCard(
  change: FileChange,
  cut: Omit<Cut, "skip" | "fromEnd">,
  cwd?: string,
): ChangeCard {
  const diff = excerpt(asText(change.diff), { ...cut, skip: isName });
  return {
    file: fileLink(change.path, cwd),
    operation: oneLine(change.operation, 20),
    added: counted(change.added),
    removed: counted(change.removed),
    diff: { ...diff, cut: change.truncated === true },
    ...(change.oldPath == null ? {} : { from: pathLabel(change.oldPath, cwd) }),
  };
}
