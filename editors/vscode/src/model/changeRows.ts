/** How changed files are told in a list. Pure. */
import type { ChangedFile, ChangeState } from "./changes";
import { plural } from "./loose";
import { oneLine } from "./text";

export const STATES: Readonly<Record<ChangeState, string>> = {
  new: "new",
  accepted: "accepted",
  rejected: "put back",
};

const OPERATIONS: Partial<Record<string, string>> = {
  create: "made",
  modify: "changed",
  delete: "deleted",
  move: "moved",
  nothing: "made and deleted again",
};

export interface ChangeRow {
  readonly path: string;
  readonly name: string;
  /** Beside the name: what was done, how it stands, who did it, and where it is. */
  readonly description: string;
  readonly tooltip: string;
  readonly state: ChangeState;
}

/** What is known of a file beside its changes. */
export interface Around {
  /** The path, from where the session works. */
  readonly short: string;
  readonly oldShort: string | undefined;
  readonly agents: readonly string[];
  /** What could not be taken back of it, for it was changed since. */
  readonly since: string | undefined;
}

function counts(added: number, removed: number): string {
  return `+${added} −${removed}`;
}

function split(short: string): [folder: string, name: string] {
  const at = Math.max(short.lastIndexOf("/"), short.lastIndexOf("\\"));
  return [short.slice(0, Math.max(at, 0)), short.slice(at + 1)];
}

export function changeRow(file: ChangedFile, around: Around): ChangeRow {
  const { added, removed, state, operation } = file;
  const agents = around.agents.map((name) => oneLine(name, 30)).join(", ");
  const did = OPERATIONS[operation] ?? oneLine(operation, 20);
  const [folder, name] = split(around.short);
  const from = around.oldShort === undefined ? undefined : oneLine(around.oldShort, 80);
  const facts = [
    counts(added, removed),
    around.since === undefined ? STATES[state] : `${STATES[state]}, changed since`,
    ...(operation === "modify" ? [] : [from === undefined ? did : `${did} from ${from}`]),
    ...(agents === "" ? [] : [`by ${agents}`]),
    ...(folder === "" ? [] : [oneLine(folder, 80)]),
  ];
  const told = [
    oneLine(around.short, 300),
    `${did}${from === undefined ? "" : ` from ${from}`}, ${counts(added, removed)}, ${STATES[state]}`,
    ...(agents === "" ? [] : [`by ${agents}`]),
    ...(around.since === undefined ? [] : [`cannot all be taken back: ${around.since}`]),
    ...(file.partial === undefined ? [] : [`cannot be shown whole: ${file.partial}`]),
  ];
  return {
    path: file.path,
    name: oneLine(name, 120),
    description: facts.join(" · "),
    tooltip: told.join("\n"),
    state,
  };
}

/** All of them in a line; nothing where there are none. */
export function changesSummary(files: readonly ChangedFile[]): string {
  if (files.length === 0) {
    return "";
  }
  const fresh = files.filter((file) => file.state === "new").length;
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const removed = files.reduce((sum, file) => sum + file.removed, 0);
  return `${plural(files.length, "file")}, ${fresh} new, ${counts(added, removed)}`;
}
