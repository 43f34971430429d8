/** The list of sessions as a tree: its groups, what each shows at first, and what leads to the rest. Pure. */
import type { Session } from "@callboard/protocol";
import type { Approvals } from "./approvals";
import { plural } from "./loose";
import { arrange, HEADINGS, stateOf, type Row } from "./rows";
import { GROUPS, newestFirst, sessionName } from "./store";
import { oneLine } from "./text";

export type GroupBy = "state" | "folder" | "none";

/** What a person wants to see of the list. */
export interface SessionFilter {
  /** Those of other folders, too. */
  readonly everywhere: boolean;
  /** In the title, agent, model, folder or id; no matter in which case. */
  readonly words: string;
}

export const NO_FILTER: SessionFilter = { everywhere: false, words: "" };

export interface ListWanted {
  readonly folders: readonly string[];
  readonly approvals: Approvals;
  readonly filter: SessionFilter;
  readonly groupBy: GroupBy;
  /** How many that are idle, or archived, a group shows, by its id. */
  readonly shown: (group: string) => number;
  /** There are older ones than those that are known. */
  readonly more: boolean;
  /** There are archived ones that are not known yet. */
  readonly moreArchived: boolean;
}

export interface GroupNode {
  readonly kind: "group";
  /** Stays the same while the group is there. */
  readonly id: string;
  readonly label: string;
  readonly about: string;
  readonly folded: boolean;
  readonly children: readonly ListNode[];
}

export interface SessionNode {
  readonly kind: "session";
  readonly sessionId: string;
  readonly row: Row;
  /** The state is told by the group that it stands in. */
  readonly told: boolean;
}

export interface MoreNode {
  readonly kind: "more";
  readonly group: string;
  /** Those that are known; there may be others. */
  readonly count: number;
  readonly open: boolean;
}

export interface HiddenNode {
  readonly kind: "hidden";
  readonly label: string;
  readonly about: string;
}

export type ListNode = GroupNode | SessionNode | MoreNode | HiddenNode;

const ARCHIVED = "archived";

/** Whether a session is one of those that are asked for by words, each of which it must hold. */
export function matches(session: Session, words: string): boolean {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const { sessionId, profile, model, cwd } = session;
  const held = [sessionName(session), sessionId, profile, model ?? "", cwd]
    .join("\n")
    .toLowerCase();
  return wanted.every((word) => held.includes(word));
}

/** The list, from the top. */
export function sessionList(sessions: readonly Session[], wanted: ListWanted): ListNode[] {
  const { filter } = wanted;
  const named = sessions.filter((session) => matches(session, filter.words));
  const { shown, hidden: elsewhere } = arrange(named, {
    folders: wanted.folders,
    all: filter.everywhere,
    approvals: wanted.approvals,
  });
  const roots = new Set(
    sessions.filter((session) => session.parentId == null).map((session) => session.sessionId),
  );
  const unnamed = roots.size - shown.length - elsewhere;
  const nodes = groups(shown, wanted);
  const hidden = hiddenNode(elsewhere, unnamed, wanted);
  return hidden ? [...nodes, hidden] : nodes;
}

function groups(rows: readonly Row[], wanted: ListWanted): ListNode[] {
  const live = rows.filter((row) => row.group !== "archived");
  const needs = live.filter((row) => row.group === "attention");
  const rest = live.filter((row) => row.group !== "attention");
  const nodes: ListNode[] = [];
  if (wanted.groupBy === "none") {
    nodes.push(...leaves(needs, false), ...limited(sorted(rest), "all", wanted, false));
  } else if (wanted.groupBy === "folder") {
    nodes.push(...group("attention", needs, wanted), ...byFolder(rest, wanted));
  } else {
    for (const id of GROUPS.filter((each) => each !== "archived")) {
      const own = live.filter((row) => row.group === id);
      nodes.push(...group(id, own, wanted));
    }
  }
  // What is not known yet must be within reach, though no group may stand there to lead to it.
  if (wanted.more && !reachable(nodes)) {
    nodes.push({ kind: "more", group: "idle", count: 0, open: true });
  }
  const archived = rows.filter((row) => row.group === "archived");
  if (archived.length > 0 || wanted.moreArchived) {
    const children = limited(archived, ARCHIVED, wanted, true);
    nodes.push(groupNode(ARCHIVED, HEADINGS.archived, "", children, true));
  }
  return nodes;
}

function reachable(nodes: readonly ListNode[]): boolean {
  return nodes.some(
    (node) => node.kind === "more" || (node.kind === "group" && reachable(node.children)),
  );
}

function group(id: "attention" | "running" | "idle", rows: Row[], wanted: ListWanted): ListNode[] {
  if (rows.length === 0) {
    return [];
  }
  const children = id === "idle" ? limited(rows, id, wanted, false) : leaves(rows, true);
  return [groupNode(id, HEADINGS[id], id === "idle" ? "" : String(rows.length), children, false)];
}

function byFolder(rows: readonly Row[], wanted: ListWanted): ListNode[] {
  const folders = new Map<string, Row[]>();
  for (const row of rows) {
    folders.set(row.session.cwd, [...(folders.get(row.session.cwd) ?? []), row]);
  }
  return [...folders]
    .sort(([, a], [, b]) => Number(b[0]?.here) - Number(a[0]?.here))
    .map(([cwd, own]) => {
      const id = `folder:${cwd}`;
      const path = oneLine(cwd, 200);
      const name = oneLine(/[^/\\]+$/.exec(cwd.replace(/[/\\]+$/, ""))?.[0] ?? cwd, 60);
      return groupNode(id, name, path, limited(sorted(own), id, wanted, false), false);
    });
}

function groupNode(
  id: string,
  label: string,
  about: string,
  children: readonly ListNode[],
  folded: boolean,
): GroupNode {
  return { kind: "group", id, label, about, folded, children };
}

/** Those that run first. */
function sorted(rows: readonly Row[]): Row[] {
  return [...rows].sort(
    (a, b) =>
      GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group) || newestFirst(a.session, b.session),
  );
}

function leaves(rows: readonly Row[], told: boolean): SessionNode[] {
  return rows.map((row) => ({ kind: "session", sessionId: row.session.sessionId, row, told }));
}

/** All that run, those others that are wanted so far, and a line that leads to the rest. */
function limited(
  rows: readonly Row[],
  id: string,
  wanted: ListWanted,
  archived: boolean,
): ListNode[] {
  const told = id === "idle" || archived;
  const limit = wanted.shown(id);
  const always = rows.filter((row) => row.group === "running" || row.session.pinned === true);
  const others = rows.filter((row) => !always.includes(row));
  const within = new Set([...always, ...others.slice(0, limit)]);
  const left = others.length - Math.min(limit, others.length);
  const open = archived ? wanted.moreArchived : wanted.more;
  const nodes: ListNode[] = leaves(
    rows.filter((row) => within.has(row)),
    told,
  );
  // Of a folder's group nobody knows whether what is not known would stand there.
  if (left > 0 || (open && (told || id === "all"))) {
    nodes.push({ kind: "more", group: id, count: left, open });
  }
  return nodes;
}

function hiddenNode(
  elsewhere: number,
  unnamed: number,
  wanted: ListWanted,
): HiddenNode | undefined {
  const count = elsewhere + unnamed;
  if (count <= 0) {
    return undefined;
  }
  const many = wanted.more ? `${count} or more` : String(count);
  const reasons = [
    ...(elsewhere > 0 ? [`${plural(elsewhere, "session")} of other folders`] : []),
    ...(unnamed > 0
      ? [`${plural(unnamed, "session")} without “${oneLine(wanted.filter.words, 60)}”`]
      : []),
  ];
  return {
    kind: "hidden",
    label: `${many} hidden by filter`,
    about: `${reasons.join(", ")}. Choose this to show all.`,
  };
}

/** What a session is doing, where its group does not tell. */
export function stateBeside(node: SessionNode): string {
  const state = stateOf(node.row.session, node.row.group);
  const usual = {
    attention: "waits for you",
    running: "running",
    idle: "done",
    archived: "archived",
  };
  return state === "done" || (node.told && state === usual[node.row.group]) ? "" : state;
}
