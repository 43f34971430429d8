/** What the status bar says of the server and of the sessions: one look at it tells whether to come. Pure. */
import { plural } from "./loose";
import type { ServerState } from "./serverState";

export interface Standing {
  readonly server: ServerState;
  readonly running: number;
  readonly approvals: number;
  /** Why there is no server, in one line. */
  readonly message?: string | undefined;
}

export interface StatusLine {
  /** With an icon before it. */
  readonly text: string;
  /** Without icons, for whoever hears it, and as a tooltip. */
  readonly about: string;
  readonly urgency: "none" | "warning" | "error";
}

const NAME = "Callboard";

/** Where the server itself is what matters. */
function ofServer({ server, message }: Standing): StatusLine | undefined {
  const line = (icon: string, text: string, about: string, urgency: StatusLine["urgency"]) => ({
    text: `$(${icon}) ${text}`,
    about: `${NAME}: ${about}`,
    urgency,
  });
  switch (server) {
    case "untrusted":
      return line("shield", NAME, "Restricted Mode, so no server is started", "none");
    case "stopped":
      return line("comment-discussion", NAME, "the server starts with the first use", "none");
    case "starting":
      return line("sync~spin", NAME, "the server is being started", "none");
    case "waiting":
      return line("sync~spin", `${NAME}: reconnecting`, message ?? "reconnecting", "none");
    case "silent":
      return line("error", `${NAME}: no answer`, "the server does not answer", "error");
    case "notFound":
      return line("error", `${NAME}: not found`, message ?? "the server was not found", "error");
    case "failed":
      return line("error", `${NAME}: no server`, message ?? "the server has ended", "error");
    case "ready":
      return undefined;
  }
}

export function statusLine(standing: Standing): StatusLine {
  const server = ofServer(standing);
  if (server) {
    return server;
  }
  const { running, approvals } = standing;
  const parts = [
    ...(approvals > 0 ? [plural(approvals, "approval")] : []),
    ...(running > 0 ? [`${running} running`] : []),
  ];
  if (parts.length === 0) {
    return { text: `$(check) ${NAME}`, about: `${NAME}: nothing runs`, urgency: "none" };
  }
  const icon = approvals > 0 ? "bell-dot" : "sync~spin";
  const waits =
    approvals === 1 ? "1 approval waits for you" : `${approvals} approvals wait for you`;
  const said = [
    ...(approvals > 0 ? [waits] : []),
    ...(running > 0 ? [running === 1 ? "1 agent runs" : `${running} agents run`] : []),
  ];
  return {
    text: `$(${icon}) ${parts.join(", ")}`,
    about: `${NAME}: ${said.join(", ")}`,
    urgency: approvals > 0 ? "warning" : "none",
  };
}
