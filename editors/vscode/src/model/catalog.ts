/** Which events change what an editor knows of the whole store: its sessions, and the approvals that wait. */
import type {
  Approval,
  ApprovalDecision,
  Event,
  Resolution,
  TurnFinished,
} from "@callboard/protocol";

/** So many sessions are listed, the newest. */
export const LISTED = 100;

/** What is to be done about an event. */
export type CatalogEffect =
  | { readonly do: "refresh"; readonly sessionId: string }
  | { readonly do: "remove"; readonly sessionId: string }
  | { readonly do: "began"; readonly sessionId: string }
  | { readonly do: "turnEnded"; readonly sessionId: string; readonly turn: TurnFinished }
  | { readonly do: "asked"; readonly approval: Approval }
  | { readonly do: "resolved"; readonly approvalId: string; readonly resolution: Resolution };

/** Of the scope `catalog`: sessions come, go and change. */
export function ofSession(event: Event): CatalogEffect[] {
  const { sessionId } = event;
  const refresh: CatalogEffect = { do: "refresh", sessionId };
  switch (event.type) {
    case "session_deleted":
      return [{ do: "remove", sessionId }];
    case "session_created":
    case "session_forked":
      return [{ do: "began", sessionId }, refresh];
    case "turn_finished":
      return [{ do: "turnEnded", sessionId, turn: event.data as TurnFinished }, refresh];
    default:
      return [refresh];
  }
}

/** Of the scope `approvals`. An end is told also of what was answered here, and no longer waits. */
export function ofApproval(event: Event): CatalogEffect[] {
  const refresh: CatalogEffect = { do: "refresh", sessionId: event.sessionId };
  const data = (event.data ?? {}) as { approval?: Approval } & Partial<ApprovalDecision>;
  if (event.type === "approval_request" && typeof data.approval?.approvalId === "string") {
    return [{ do: "asked", approval: data.approval }, refresh];
  } else if (event.type === "approval_decision" && data.approvalId && data.resolution) {
    const { approvalId, resolution } = data;
    return [{ do: "resolved", approvalId, resolution }, refresh];
  }
  return [refresh];
}

/** Events of an open session after which its place in the lists may be another one. */
const SEEN: ReadonlySet<string> = new Set([
  "turn_started",
  "mode_changed",
  "model_changed",
  "turn_parked",
]);

/** Of a session that is open here, beyond its text. */
export function ofOpenSession(event: Event): CatalogEffect[] {
  return SEEN.has(event.type) ? [{ do: "refresh", sessionId: event.sessionId }] : [];
}
