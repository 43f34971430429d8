/** Approvals that wait for an answer, of all sessions of the store. */
import type { Approval, ApprovalOption } from "@callboard/protocol";
import { list } from "./loose";
import { asText } from "./text";

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface Approvals {
  /** The oldest first. */
  pending: Approval[];
  /** Those that have ended; an older listing may still hold them. */
  readonly ended: Set<string>;
}

export function newApprovals(): Approvals {
  return { pending: [], ended: new Set() };
}

export function getApproval(state: Approvals, approvalId: string): Approval | undefined {
  return state.pending.find((approval) => approval.approvalId === approvalId);
}

function inOrder(a: Approval, b: Approval): number {
  if (a.createdAt !== b.createdAt) {
    return a.createdAt < b.createdAt ? -1 : 1;
  }
  return a.approvalId < b.approvalId ? -1 : 1;
}

/** What it is about, where the server did not say so: the tool alone. */
function nothingBut(tool: unknown): Approval["subject"] {
  return { type: "toolCall", name: asText(tool), arguments: {} };
}

/** What a peer sends as an approval, as one that everybody here can look at; undefined where it is none. */
function fitting(sent: unknown): Approval | undefined {
  if (!isFields(sent)) {
    return undefined;
  }
  const { approvalId, sessionId, rootId, subject, path, ...others } = sent as Partial<Approval>;
  if (typeof approvalId !== "string" || typeof sessionId !== "string") {
    return undefined;
  }
  const fit = {
    ...others,
    approvalId,
    sessionId,
    rootId: typeof rootId === "string" ? rootId : sessionId,
    subject: isFields(subject) ? subject : nothingBut(others.tool),
    options: list(others.options),
    ...(path === undefined ? {} : { path: list(path) }),
  };
  return fit as Approval;
}

/** Takes one in; false when it is there already, has ended, does not wait, or is none. */
export function addApproval(state: Approvals, sent: Approval): boolean {
  const approval = fitting(sent);
  if (!approval) {
    return false;
  }
  if (state.ended.has(approval.approvalId) || (approval.state ?? "pending") !== "pending") {
    return false;
  }
  if (getApproval(state, approval.approvalId)) {
    return false;
  }
  state.pending = [...state.pending, approval].sort(inOrder);
  return true;
}

/** The one that has ended; undefined when it did not wait here. */
export function removeApproval(state: Approvals, approvalId: string): Approval | undefined {
  state.ended.add(approvalId);
  const ended = getApproval(state, approvalId);
  if (ended) {
    state.pending = state.pending.filter((approval) => approval !== ended);
  }
  return ended;
}

/** All that wait, as the server lists them; others are gone. */
export function replaceApprovals(state: Approvals, listed: readonly Approval[]): void {
  state.pending = [];
  for (const approval of listed) {
    addApproval(state, approval);
  }
}

function isOf(approval: Approval, sessionId: string): boolean {
  return approval.sessionId === sessionId || approval.rootId === sessionId;
}

/** A session is gone, and with it what it asked: those are told. */
export function forgetApprovals(state: Approvals, sessionId: string): Approval[] {
  const gone = approvalsOf(state, sessionId);
  state.pending = state.pending.filter((approval) => !isOf(approval, sessionId));
  return gone;
}

/** Those of a session, or of its agents. */
export function approvalsOf(state: Approvals, sessionId: string): Approval[] {
  return state.pending.filter((approval) => isOf(approval, sessionId));
}

/** The one after `approvalId`, from the oldest again after the last. */
export function nextApproval(state: Approvals, approvalId?: string): Approval | undefined {
  const at = state.pending.findIndex((approval) => approval.approvalId === approvalId);
  return state.pending[at + 1] ?? state.pending[0];
}

/** By the keys 1 to 5: once, for the session, for good, reject, reject and say why. */
const KINDS = ["allow_once", "allow_session", "allow_always", "reject_once", "reject_once"];

/** The option behind a key; undefined where the approval does not offer it. */
export function optionOf(approval: Approval, number: number): ApprovalOption | undefined {
  const kind = KINDS[number - 1];
  return kind === undefined
    ? undefined
    : list(approval.options).find((option) => option.kind === kind);
}
