/** What an answer must hold to be one, so that whoever has asked need not look for it. */
import type { Requests, Session } from "@callboard/protocol";
import { list } from "../model/loose";

/** Methods that are answered with something of a kind. */
type With<Kind> = {
  [M in keyof Requests]: Requests[M]["result"] extends Kind ? M : never;
}[keyof Requests];

const PAGES: Record<With<{ data: unknown[] }>, true> = {
  "agent/list": true,
  "approval/list": true,
  "approval/ruleList": true,
  "event/list": true,
  "group/messageList": true,
  "group/taskList": true,
  "model/list": true,
  "profile/list": true,
  "schedule/list": true,
  "schedule/runs": true,
  "session/list": true,
  "session/queue": true,
  "session/search": true,
  "session/turns": true,
};

const SESSIONS: Record<With<{ session: Session }>, true> = {
  "session/archive": true,
  "session/close": true,
  "session/create": true,
  "session/fork": true,
  "session/get": true,
  "session/import": true,
  "session/rewind": true,
  "session/unarchive": true,
  "session/update": true,
};

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The answer to a request, without what is nothing in its list; undefined where it is none. A page that leads to
 * itself is none either: whoever reads all pages would never come to an end.
 */
export function answer(method: string, params: object, result: unknown): object | undefined {
  if (!isObject(result)) {
    return undefined; // all that is asked here is answered with an object
  } else if (Object.hasOwn(SESSIONS, method)) {
    const { session } = result;
    return isObject(session) && typeof session["sessionId"] === "string" ? result : undefined;
  } else if (!Object.hasOwn(PAGES, method)) {
    return result;
  }
  const { data, nextCursor } = result;
  const again = nextCursor != null && "cursor" in params && params.cursor === nextCursor;
  return Array.isArray(data) && !again ? { ...result, data: list(data) } : undefined;
}
