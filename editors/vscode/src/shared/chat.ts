/**
 * What passes between the extension and the page of a chat.
 *
 * The page holds nothing that counts: it draws what it is told, and says what the person does. When it comes
 * up (for the first time, or after it was hidden) it says `ready` and is told everything that is in its
 * window; from then on it is told what is new. All texts are as a person may see them: control characters
 * and marks that turn the direction of writing are spelled out already. They are untrusted all the same.
 */
import type { CancelScope, Delivery, Mode } from "@callboard/protocol";

/** How something stands; each is told by an icon and by words, never by colour alone. */
export type Tone = "waiting" | "running" | "ok" | "failed" | "stopped" | "plain";

/** A file, as it is named where the agent works. */
export interface FileLink {
  label: string;
  path: string;
  /** 1-based. */
  line?: number;
}

/** A part of a text; `above` and `below` count the lines that are left out there. */
export interface Excerpt {
  lines: string[];
  above: number;
  below: number;
  /** The whole is longer than what the log holds in its events. */
  cut: boolean;
}

export interface ChangeCard {
  file: FileLink;
  operation: "create" | "modify" | "delete" | "move" | (string & {});
  from?: string;
  added: number;
  removed: number;
  /** Lines of a unified diff, each with its sign. */
  diff: Excerpt;
  /** What the person has decided, as far as this is known: a closed diff is still pending. */
  verdict?: "pending" | "accepted" | "rejected";
}

/** One way to answer an approval. */
export interface ChoiceCard {
  /** The digit that is its key. */
  number: number;
  optionId: string;
  label: string;
  /** What it does, in a word or two. */
  short: string;
  allows: boolean;
  /** What the person is asked for with it. */
  note?: "why" | "answer";
  /** It lasts beyond this call: said in a line of its own. */
  lasts: boolean;
}

export type SubjectCard =
  | { type: "command"; command: string; cwd: string }
  | { type: "fileChange"; changes: ChangeCard[] }
  | { type: "form"; message: string; fields: { name: string; about: string }[] }
  | { type: "toolCall"; name: string; json: string; files: FileLink[] };

export interface ApprovalCard {
  approvalId: string;
  kind: "permission" | "question";
  title: string;
  /** The agents from below the root down to the one that asks; absent when the root itself asks. */
  who?: string;
  risk: "low" | "medium" | "high" | (string & {});
  reason?: string;
  subject: SubjectCard;
  choices: ChoiceCard[];
  /** One line, once it was answered: "Allowed by …". */
  answered?: string;
  expiresAt?: string;
}

/** How much a notice matters to the person. */
export type Severity = "info" | "warning" | "error";

interface Placed {
  id: string;
  /** Who speaks, where that changes: the heading above the card. */
  speaker?: string;
  /** RFC 3339, UTC. */
  at?: string;
}

export type Card =
  | (Placed & {
      kind: "prompt";
      text: string;
      steer: boolean;
      attachments: (FileLink | string)[];
      cut: boolean;
      /** The turn that took it in, for going back to before it. */
      turnId?: string;
    })
  | (Placed & {
      kind: "answer" | "thought";
      text: string;
      streaming: boolean;
      /** Cut off by a crash or a cancel. */
      partial: boolean;
      cut: boolean;
    })
  | (Placed & {
      kind: "tool";
      title: string;
      name: string;
      /** As in `ToolKind`. */
      tool: string;
      tone: Tone;
      /** What the tone means, in words: "waits for you", "failed, exit 1". */
      state: string;
      duration?: string;
      startedAt?: string;
      output?: Excerpt;
      changes: ChangeCard[];
      files: FileLink[];
      approval?: ApprovalCard;
    })
  | (Placed & {
      kind: "notice";
      text: string;
      /** Absent where it only tells what the session did. */
      severity?: Severity;
      /** What else it says. */
      about?: string;
    })
  | (Placed & {
      kind: "error";
      text: string;
      about: string;
      /** No model can be used as things are. */
      setup?: true;
      /** Asking the same again may help. */
      retryable: boolean;
    })
  | (Placed & {
      kind: "turn";
      tone: Tone;
      /** "done · 12 s · 3.1 k in, 200 out". */
      text: string;
      failure?: { text: string; about: string; setup?: true };
      turnId: string;
    });

/** A prompt that no turn has taken in, or that is still on its way to the log. */
export interface QueuedCard {
  id: string;
  /** Absent while it is on its way: then it cannot be changed. */
  eventSeq?: number;
  text: string;
  author?: string;
  delivery: Delivery;
  attachments: string[];
  editable: boolean;
}

export interface PlanCard {
  entries: { text: string; status: "pending" | "in_progress" | "completed"; high: boolean }[];
  done: number;
}

/** What goes along with the next prompt. */
export interface ContextChip {
  id: string;
  label: string;
  title: string;
  kind: "selection" | "file" | "folder";
  /** A chip that is off stays in view and is not sent. */
  on: boolean;
}

export interface HeadCard {
  sessionId: string;
  title: string;
  agent: string;
  cwd: string;
  /** Set while a turn runs. */
  turn?: {
    turnId?: string;
    startedAt?: string;
    state: "running" | "waiting" | "parked" | "stopping";
    /** Since when it is being stopped. */
    stoppingSince?: string;
  };
  mode?: Mode;
  model?: string;
  /** As agents that are programs of their own call theirs. */
  agentMode?: string;
  agentModel?: string;
  usage?: string;
  /** Of a child agent: its words, and what may be done. */
  parent?: { sessionId: string; title: string };
  closed: boolean;
  archived: boolean;
  /** The agents below it are at work: what an interrupt may be meant for. */
  agentsRunning: number;
  inGroup: boolean;
}

/** A mode or a model in words: Callboard's own, and what agents that are programs of their own call theirs. */
export function bothOf(own: string | undefined, ofAgents: string | undefined): string {
  return [own, ofAgents].filter((each) => each !== undefined).join(", ");
}

/** Why there is nothing, or nothing new, to be seen; the page says so, and offers the way out. */
export type Phase =
  | { state: "live" }
  | { state: "loading" }
  | { state: "none" }
  | { state: "untrusted" }
  | { state: "starting" }
  /** `starting`: it never began to serve; `lines` are what it said last. */
  | { state: "reconnecting"; message: string; starting: boolean; lines: string[] }
  | { state: "silent"; message: string }
  | { state: "failed"; message: string; lines: string[] }
  | { state: "lost"; message: string };

export interface Look {
  sendKey: "enter" | "modEnter";
  /** In pixels; 0 is the editor's own. */
  fontSize: number;
  showUsage: boolean;
}

export interface Everything {
  phase: Phase;
  head?: HeadCard;
  cards: Card[];
  /** There are more before the first card. */
  older: boolean;
  queue: QueuedCard[];
  plan?: PlanCard;
  /** Approvals of agents below this session: shown at the end of the list. */
  approvals: ApprovalCard[];
  /** How many wait in other sessions of the store. */
  elsewhere: number;
  context: ContextChip[];
  look: Look;
}

export type ToChat =
  | { type: "all"; all: Everything }
  /**
   * What is new: cards that look different or come at the end; text that a card goes on with. `before`, when
   * older cards come in front: they stand before all others.
   */
  | {
      type: "news";
      cards?: Card[];
      before?: Card[];
      older?: boolean;
      append?: { id: string; text: string }[];
    }
  | { type: "phase"; phase: Phase }
  | { type: "head"; head: HeadCard | undefined }
  | { type: "queue"; queue: QueuedCard[] }
  | { type: "plan"; plan: PlanCard | undefined }
  | { type: "approvals"; approvals: ApprovalCard[]; elsewhere: number }
  | { type: "context"; context: ContextChip[] }
  | { type: "look"; look: Look }
  /** A prompt was taken (its text is safe in the log), or given back. */
  | { type: "sent"; key: string; ok: boolean; message?: string }
  /** An answer to an approval did not count; the card stays until the log says what came of it. */
  | { type: "refused"; approvalId: string; message: string }
  /** Puts a text into the composer, behind what stands there. */
  | { type: "insert"; text: string }
  /** Puts the focus on the composer, or on the card of an approval. */
  | { type: "focus"; approvalId?: string }
  | { type: "files"; query: string; files: FileLink[] }
  /** Brings a card into view and marks it: what was searched for is in it. */
  | { type: "found"; cardId: string };

export type FromChat =
  | { type: "ready" }
  | { type: "send"; key: string; text: string; delivery: Delivery }
  | { type: "answer"; approvalId: string; optionId: string; note?: string }
  | { type: "cancel"; scope: CancelScope }
  | { type: "interrupt"; what: "choose" | "group" | "force" }
  | { type: "older" }
  | { type: "retry" }
  | { type: "openFile"; file: FileLink }
  | { type: "openDiff"; cardId: string; path: string }
  | { type: "openApprovalDiff"; approvalId: string }
  /** The whole of what a card shows in part, as a document that can only be read. */
  | { type: "openWhole"; cardId: string }
  | { type: "queueEdit"; eventSeq: number; text: string }
  | { type: "queueRemove"; eventSeq: number }
  | { type: "queueSteer"; eventSeq: number }
  | { type: "rewind"; turnId: string }
  | { type: "copy"; text: string }
  | { type: "chip"; id: string; do: "toggle" | "remove" }
  | { type: "findFiles"; query: string }
  | { type: "attach"; file: FileLink }
  | { type: "openLink"; href: string }
  | { type: "focused"; focused: boolean }
  | { type: "command"; command: ChatCommand };

/** Commands that the page may ask for; no other one is run for it. */
export const CHAT_COMMANDS = [
  "callboard.newSession",
  "callboard.searchSessions",
  "callboard.selectModel",
  "callboard.selectMode",
  "callboard.addFile",
  "callboard.restartServer",
  "callboard.showLog",
  "callboard.doctor",
  "callboard.nextApproval",
  "callboard.showUsage",
  "callboard.openTaskBoard",
  "callboard.openChanges",
  "callboard.openParent",
  "callboard.renameSession",
  "callboard.manageTrust",
  "callboard.serverSettings",
] as const;
export type ChatCommand = (typeof CHAT_COMMANDS)[number];
