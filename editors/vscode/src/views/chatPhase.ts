import type { App } from "../app";
import type { OpenSession } from "../session";
import type { Phase } from "../shared/chat";

/** Why a chat shows nothing new, as a page says it. */
export function phaseOf(app: App, open: OpenSession | undefined): Phase {
  if (!app.trusted) {
    return { state: "untrusted" };
  }
  const { server } = app;
  const { failure } = server;
  const message = failure?.message ?? "The server has ended.";
  const lines = failure?.lines ?? [];
  if (server.state === "failed") {
    return { state: "failed", message, lines };
  }
  if (open?.phase === "lost" && server.state === "ready") {
    return { state: "lost", message: open.fault ?? "This session cannot be read." };
  }
  if (server.state === "waiting" || (server.state === "starting" && failure)) {
    return { state: "reconnecting", message, lines, starting: failure?.starting === true };
  }
  if (server.state === "starting" || (open && server.state === "stopped")) {
    return app.greeted
      ? { state: "reconnecting", message: "The server is started again.", lines, starting: false }
      : { state: "starting" };
  }
  if (server.silent) {
    return { state: "silent", message: "The server does not answer." };
  }
  if (!open) {
    return { state: "none" };
  }
  return open.phase === "live" ? { state: "live" } : { state: "loading" };
}
