// A board of tasks as the extension holds it, for tests to begin with.
import type { Group, GroupMember, GroupTask } from "@callboard/protocol";

import type { BoardView } from "../../src/model/tasks";

export const MEMBERS: GroupMember[] = [
  { agentId: "ses_root", name: "root", isRoot: true },
  { agentId: "ses_docs", name: "docs", status: "running" },
  { agentId: "ses_old", name: "old", status: "completed" },
];

export function board(
  tasks: GroupTask[],
  group: Partial<Group> = {},
  fields: Partial<BoardView> = {},
): BoardView {
  return {
    root: "ses_root",
    title: "The project",
    tasks,
    more: false,
    messages: [],
    group: {
      groupId: "grp",
      rootId: "ses_root",
      name: "The project",
      createdAt: "2026-01-01T00:00:00Z",
      members: MEMBERS,
      counts: { total: tasks.length },
      ...group,
    },
    ...fields,
  };
}
