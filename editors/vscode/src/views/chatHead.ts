import type { App } from "../app";
import { worksWith } from "../model/options";
import { sessionName } from "../model/store";
import { oneLine } from "../model/text";
import { usageLine } from "../model/usage";
import type { OpenSession } from "../session";
import type { HeadCard } from "../shared/chat";

/** Longest title (characters) that a page is told. */
const TITLE = 200;

/** What stands above a chat; undefined while nothing is known of its session. */
export function headCard(app: App, open: OpenSession): HeadCard | undefined {
  const { session, transcript } = open;
  if (!session) {
    return undefined;
  }
  const parent = session.parentId == null ? undefined : app.sessions.byId.get(session.parentId);
  let agentsRunning = 0;
  for (const other of app.sessions.byId.values()) {
    if (other.rootId === open.id && other.sessionId !== open.id && other.status === "running") {
      agentsRunning += 1;
    }
  }
  const title = transcript.title ?? session.title;
  const head: HeadCard = {
    sessionId: open.id,
    title: oneLine(sessionName({ sessionId: open.id, title: title ?? null }), TITLE),
    agent: oneLine(session.profile, 60),
    cwd: oneLine(session.cwd),
    closed: session.closed === true || transcript.closed === true,
    archived: session.archived === true,
    agentsRunning,
    inGroup: session.parentId != null || app.groups.has(session.rootId),
  };
  const mode = transcript.mode ?? session.mode;
  const work = worksWith(session, mode, transcript.model ?? session.model);
  const usage = usageLine(session.usage ?? undefined);
  if (mode) {
    head.mode = oneLine(mode, 20);
  }
  if (work.model !== undefined) {
    head.model = oneLine(work.model, 80);
  }
  if (work.agentModel !== undefined) {
    head.agentModel = oneLine(work.agentModel, 80);
  }
  if (work.agentMode !== undefined) {
    head.agentMode = oneLine(work.agentMode, 60);
  }
  if (usage !== "") {
    head.usage = usage;
  }
  if (session.parentId != null) {
    head.parent = {
      sessionId: session.parentId,
      title: oneLine(sessionName(parent ?? { sessionId: session.parentId }), TITLE),
    };
  }
  const turn = turnOf(app, open);
  if (turn) {
    head.turn = turn;
  }
  return head;
}

function turnOf(app: App, open: OpenSession): HeadCard["turn"] {
  const { turn } = open.transcript;
  if (!turn) {
    return undefined;
  }
  const stop = app.stopping.get(open.id);
  const stopping = stop !== undefined && stop.turnId === turn.id ? stop : undefined;
  const state =
    turn.cancelling || stopping
      ? "stopping"
      : turn.parked
        ? "parked"
        : turn.state === "waiting_approval"
          ? "waiting"
          : "running";
  return {
    state,
    ...(turn.id === undefined ? {} : { turnId: turn.id }),
    ...(turn.startedAt === undefined ? {} : { startedAt: turn.startedAt }),
    ...(stopping ? { stoppingSince: stopping.since } : {}),
  };
}
