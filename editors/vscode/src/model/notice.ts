/** What a notification says of an approval, and what may be answered without seeing more. Pure. */
import type { Approval } from "@callboard/protocol";
import { who } from "./answers";
import { list, plural } from "./loose";
import { asText, message, visible } from "./text";

/** Longest text (characters) that a notification shows without folding it away. */
const WIDTH = 240;
/** So many files are named. */
const FILES = 3;

export interface ApprovalNotice {
  readonly text: string;
  /** All that is asked about stands in the text, so that it may be allowed there and then. */
  readonly whole: boolean;
}

function shown(what: string): ApprovalNotice {
  // A line end or a mark that is spelled out would make another text of it than the one that is run.
  const plain = what.trim();
  return {
    text: message(plain, WIDTH),
    whole:
      plain === visible(plain) && !/[\n\t]| {2}/.test(plain) && message(plain, WIDTH) === plain,
  };
}

function subjectOf(approval: Approval, cwd: string | undefined): ApprovalNotice {
  const { subject } = approval;
  if (subject.type === "command" && "command" in subject) {
    const { text, whole } = shown(asText(subject.command));
    const elsewhere = subject.cwd !== cwd;
    return { text: elsewhere ? `${text} (in ${message(subject.cwd, 80)})` : text, whole };
  }
  if (subject.type === "fileChange" && "changes" in subject) {
    const changes = list(subject.changes);
    const named = changes.slice(0, FILES).map(({ path }) => asText(path));
    const rest = changes.length - named.length;
    const text = [...named, ...(rest > 0 ? [plural(rest, "other file")] : [])].join(", ");
    // What would be changed is in the diff, which a notification has no room for.
    return { text: message(text, WIDTH), whole: false };
  }
  return { text: message(approval.title, WIDTH), whole: false };
}

/**
 * @param session what its session is called
 * @param cwd the folder that the session works in
 */
export function approvalNotice(
  approval: Approval,
  session: string,
  cwd: string | undefined,
): ApprovalNotice {
  const agent = who(approval);
  const asker = agent === undefined ? session : `${message(agent, 60)} in ${session}`;
  const { text, whole } = subjectOf(approval, cwd);
  const asks = approval.kind === "question" ? "asks" : verb(approval);
  return {
    text: `${asker} ${asks}: ${text}`,
    whole: whole && approval.kind !== "question",
  };
}

function verb(approval: Approval): string {
  switch (approval.subject.type) {
    case "command":
      return "wants to run";
    case "fileChange":
      return "wants to change";
    default:
      return "wants to";
  }
}
