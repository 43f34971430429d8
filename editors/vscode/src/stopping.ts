/** Sessions that were asked to stop and have not yet: since when, and what was meant. */
import type { CancelScope } from "@callboard/protocol";

export interface Stop {
  scope: CancelScope;
  /** The turn that is to stop. */
  turnId: string | undefined;
  /** RFC 3339, UTC. */
  since: string;
}

/** After so long (ms) more force is offered. */
export const PATIENCE_MS = 5000;
