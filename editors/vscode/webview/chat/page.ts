/** What all parts of the page share: what it was told, whom it tells, and what it keeps. */
import type { Delivery } from "@callboard/protocol";
import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { ApprovalCard, Card, ChatCommand, FromChat, ToChat } from "../../src/shared/chat.js";
import type { Host } from "../shared/host.js";
import { announce } from "../shared/live.js";
import { Arrivals } from "./arrivals.js";
import { Saved } from "./saved.js";
import { apply, EMPTY, waiting } from "./state.js";
import type { ChatState } from "./state.js";

/** What is told once, and is no part of what is shown. */
export type Told = Extract<ToChat, { type: "sent" | "insert" | "focus" | "files" | "found" }>;

function heard(approval: ApprovalCard): string {
  const about = approval.subject;
  const what =
    about.type === "command"
      ? about.command
      : about.type === "fileChange"
        ? about.changes.map((change) => change.file.label).join(", ")
        : about.type === "form"
          ? about.message
          : about.name;
  const who = approval.who ? `${approval.who} asks` : "Waits for your answer";
  const risk = approval.kind === "permission" ? `, ${approval.risk} risk` : "";
  return `${who}: ${approval.title}${risk}. ${what}`;
}

export class Page {
  state: ChatState = EMPTY;
  readonly arrivals = new Arrivals();
  readonly saved: Saved;
  /** Answers on their way, and what came back when one did not count. */
  readonly answering = new Set<string>();
  readonly refused = new Map<string, string>();
  private readonly drawn = new Set<() => void>();
  private readonly sent = new Set<() => void>();
  private readonly told = new Set<(message: Told) => void>();
  private frame = 0;
  /** What was on its way when the page was taken down, and is told by nobody since. */
  private readonly leftover: Set<string>;

  constructor(private readonly host: Host<FromChat>) {
    this.saved = new Saved(host);
    this.leftover = new Set(this.saved.sending.map((each) => each.key));
  }

  /** The session whose chat this is; empty where there is none. */
  get session(): string {
    return this.state.head?.sessionId ?? this.saved.sessionId ?? "";
  }

  post(message: FromChat): void {
    this.host.post(message);
  }

  run(command: ChatCommand): void {
    this.host.post({ type: "command", command });
  }

  hear(message: ToChat): void {
    switch (message.type) {
      case "refused":
        this.answering.delete(message.approvalId);
        this.refused.set(message.approvalId, message.message);
        announce(message.message, "assertive");
        break;
      case "sent":
      case "insert":
      case "focus":
      case "files":
      case "found":
        for (const listener of this.told) {
          listener(message);
        }
        break;
      default:
        this.change(message);
    }
    this.draw();
  }

  answer(approval: ApprovalCard, optionId: string, note?: string): void {
    this.answering.add(approval.approvalId);
    this.refused.delete(approval.approvalId);
    this.host.post({
      type: "answer",
      approvalId: approval.approvalId,
      optionId,
      ...(note === undefined ? {} : { note }),
    });
    this.draw();
  }

  /** Calls back with each frame in which there is something new to be drawn. */
  onDraw(listener: () => void): () => void {
    this.drawn.add(listener);
    return () => this.drawn.delete(listener);
  }

  /** Calls back when the person has said something. */
  onSent(listener: () => void): () => void {
    this.sent.add(listener);
    return () => this.sent.delete(listener);
  }

  /** What was said is on its way until the extension tells what came of it. */
  send(key: string, text: string, delivery: Delivery): void {
    this.saved.setSending([...this.saved.sending, { key, text, session: this.session }]);
    this.host.post({ type: "send", key, text, delivery });
    for (const listener of this.sent) {
      listener();
    }
    this.draw();
  }

  onTold(listener: (message: Told) => void): () => void {
    this.told.add(listener);
    return () => this.told.delete(listener);
  }

  private change(message: ToChat): void {
    const before = this.state;
    this.state = apply(before, message);
    // Before the server is there nobody knows the session by its name; it is the one of before all the same.
    const { head, phase } = this.state;
    if (head || phase.state === "none") {
      this.saved.sessionId = head?.sessionId;
    }
    if (message.type === "all") {
      this.giveBack();
    }
    const fresh = this.arrivals.update(waiting(this.state), performance.now());
    if (fresh.length > 0) {
      announce(fresh.map(heard).join("\n"), "assertive");
    }
    const there = new Set(waiting(this.state).map((each) => each.approvalId));
    for (const id of [...this.answering, ...this.refused.keys()]) {
      if (!there.has(id)) {
        this.answering.delete(id);
        this.refused.delete(id);
      }
    }
    if (message.type === "news") {
      for (const card of message.cards ?? []) {
        this.read(before, card);
      }
    }
  }

  /** What neither waits here nor was said gets back to where it was written. */
  private giveBack(): void {
    const { cards, queue } = this.state;
    for (const each of this.saved.sending) {
      const here = each.session === this.session || each.session === "";
      if (!this.leftover.has(each.key) || !here) {
        continue;
      }
      this.leftover.delete(each.key);
      const text = each.text.trim();
      const there =
        queue.some((queued) => queued.text.trim() === text) ||
        cards.some((card) => card.kind === "prompt" && card.text.trim() === text);
      const message = "This was on its way when the chat was closed, and may not have been sent.";
      this.hear({ type: "sent", key: each.key, ok: there, ...(there ? {} : { message }) });
    }
  }

  /** An answer is read out when it is finished; while it comes it would be read in pieces. */
  private read(before: ChatState, card: Card): void {
    const at = before.at.get(card.id);
    const was = at === undefined ? undefined : before.cards[at];
    if (card.kind === "answer" && !card.streaming && was?.kind === "answer" && was.streaming) {
      announce(card.text);
    }
  }

  private draw(): void {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        for (const listener of this.drawn) {
          listener();
        }
      });
    }
  }
}

const PageContext = createContext<Page | undefined>(undefined);
export const PageProvider = PageContext.Provider;

export function usePage(): Page {
  const page = useContext(PageContext);
  if (!page) {
    throw new Error("no page around this part of it");
  }
  return page;
}
