import type { App } from "../app";
import { sessionName } from "../model/store";
import { message } from "../model/text";

/** What a message calls a session. */
export function called(app: Pick<App, "sessions">, sessionId: string): string {
  const session = app.sessions.byId.get(sessionId);
  return `“${message(sessionName(session ?? { sessionId }), 60)}”`;
}
