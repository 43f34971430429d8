// What the server sends, for tests to begin with.
import type { Agent, Approval, GroupTask, Session, SessionOption } from "@callboard/protocol";

export function session(fields: Partial<Session> = {}): Session {
  return {
    sessionId: "ses_1",
    rootId: fields.sessionId ?? "ses_1",
    cwd: "/home/ada/project",
    profile: "default",
    mode: "default",
    status: "idle",
    createdAt: "2024-05-01T09:00:00Z",
    updatedAt: "2024-05-01T10:00:00Z",
    headSeq: 1,
    queueLength: 0,
    pendingApprovals: 0,
    lastOutcome: "completed",
    ...fields,
  };
}

export function approval(id: string, fields: Partial<Approval> = {}): Approval {
  return {
    approvalId: id,
    sessionId: "ses_1",
    rootId: "ses_1",
    turnId: "trn_1",
    callId: "call_1",
    kind: "permission",
    title: id,
    tool: "run_command",
    subject: { type: "command", command: "make", cwd: "/w" },
    options: [],
    createdAt: "2030-01-01T10:00:00.000Z",
    state: "pending",
    ...fields,
  };
}

export function agent(name: string, fields: Partial<Agent> = {}): Agent {
  return {
    agentId: `ses_${name}`,
    rootId: "ses_root",
    parentId: "ses_root",
    name,
    status: "running",
    profile: "default",
    mode: "default",
    depth: 1,
    createdAt: "2026-01-01T00:00:00Z",
    path: [],
    ...fields,
  };
}

/** What an agent that is a program of its own lets a session be set to; its id is that of its category. */
export function agentOption(
  profile: string,
  category: string,
  fields: Partial<SessionOption> = {},
): SessionOption {
  return {
    profile,
    optionId: category,
    name: `The ${category}`,
    value: "s",
    values: [
      { value: "l", name: "Large", description: "Slow\nand good" },
      { value: "s", name: "Small" },
    ],
    category,
    ...fields,
  };
}

export function task(name: string, status: string, fields: Partial<GroupTask> = {}): GroupTask {
  return {
    taskId: `tsk_${name}`,
    groupId: "grp",
    title: `Task ${name}`,
    status,
    createdBy: "ses_root",
    createdAt: "2026-01-01T00:00:00Z",
    updatedAt: "2026-01-01T00:00:00Z",
    required: true,
    dependencies: [],
    blockers: [],
    ...fields,
  };
}
