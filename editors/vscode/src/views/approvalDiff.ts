/** A change that waits for an answer: the file as it is beside what it would be. */
import type { Approval } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import { setting } from "../config";
import { failed } from "../commands/registry";
import { HOLD_MS } from "../model/arrivals";
import { getApproval, optionOf } from "../model/approvals";
import { message, oneLine } from "../model/text";
import { CallError } from "../server/errors";
import { approvalContent, proposedChanges } from "./diffContent";
import {
  activeTab,
  closeTabs,
  keyOf,
  shownAbout,
  shownIn,
  type About,
  type DiffDocuments,
} from "./diffDocuments";
import { display, fill } from "./diffDisplay";
import { mention } from "./verdicts";

type ShownApproval = About<"approval">;

/** Nobody is taken away from what they typed into so long (ms) ago. */
const TYPING_MS = 2000;

export class ApprovalDiffs implements vscode.Disposable {
  /** What was shown, as it was asked. */
  readonly #seen = new Map<string, Approval>();
  #shown = new Map<string, ShownApproval>();
  /** One that came by itself, and when (ms): a key that comes with it was typed for what stood there before. */
  #came: { readonly approvalId: string; readonly at: number } | undefined;
  /** Those that need no opening any more: they were there, or were opened. */
  readonly #opened = new Set<string>();
  #typed = 0;
  #later: NodeJS.Timeout | undefined;
  readonly #offs: (() => void)[];
  readonly #registered: vscode.Disposable;

  /** `isVisible` tells whether the chat of a session is in view. */
  constructor(
    private readonly app: App,
    private readonly documents: DiffDocuments,
    private readonly isVisible: (sessionId: string) => boolean,
    private readonly changed: () => void,
  ) {
    this.#offs = [
      app.on("approvals", () => {
        this.changed();
        this.#look();
      }),
    ];
    this.#registered = vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (contentChanges.length > 0 && document === vscode.window.activeTextEditor?.document) {
        this.#typed = Date.now();
      }
    });
  }

  dispose(): void {
    clearTimeout(this.#later);
    for (const off of this.#offs) {
      off();
    }
    this.#registered.dispose();
  }

  /**
   * Shows what an approval would do, as the server has it now.
   * @throws CallError
   */
  async show(
    approvalId: string,
    index = 0,
    options: vscode.TextDocumentShowOptions = {},
  ): Promise<void> {
    const { approval } = await this.app.request("approval/get", { approvalId });
    const title = oneLine(approval.title, 60);
    if ((approval.state ?? "pending") !== "pending") {
      throw new CallError(0, `"${title}" was answered already.`);
    }
    const content = await approvalContent(approval, index);
    if (!content) {
      throw new CallError(0, `"${title}" changes no file.`);
    }
    this.#seen.set(approvalId, approval);
    await display(this.documents, content, options);
    this.sync();
  }

  /** What the active tab shows, while it waits. */
  get current(): { approval: Approval; index: number } | undefined {
    const shown = shownIn(activeTab());
    if (shown?.about !== "approval") {
      return undefined;
    }
    const approval = getApproval(this.app.approvals, shown.approvalId);
    return approval && { approval, index: shown.index };
  }

  /**
   * Answers what the active tab shows: by the keys of an approval, 1 allows it once, 4 denies it.
   * @returns whether something is shown there
   * @throws CallError
   */
  async answer(number: number): Promise<boolean> {
    const { current } = this;
    if (!current) {
      return false;
    }
    const { approval } = current;
    const came = this.#came;
    if (came?.approvalId === approval.approvalId && Date.now() - came.at < HOLD_MS) {
      const title = oneLine(approval.title, 60);
      throw new CallError(0, `"${title}" has only just come. Press it again if you mean it.`);
    }
    const option = optionOf(approval, number);
    if (!option) {
      throw new CallError(0, "That answer is not offered here.");
    }
    const answered = await this.app.answer(approval, option);
    if (!answered.taken) {
      throw new CallError(0, answered.message);
    }
    this.#shown.delete(keyOf(subject(approval)));
    await closeTabs(subject(approval));
    return true;
  }

  /** Shows the next file of what is shown. @returns whether something is shown */
  async next(): Promise<boolean> {
    const { current } = this;
    if (!current) {
      return false;
    }
    const count = proposedChanges(current.approval).length;
    if (count > 1) {
      await this.show(current.approval.approvalId, (current.index + 1) % count);
    } else {
      mention("there is no other file in this change");
    }
    return true;
  }

  /** Fills a tab of which only the address is known; it may have been answered meanwhile. */
  restore(shown: ShownApproval): void {
    this.#fill(shown).catch((fault: unknown) =>
      failed(this.app, fault, "The diff cannot be shown"),
    );
  }

  async #fill(shown: ShownApproval): Promise<void> {
    const { approval } = await this.app.request("approval/get", { approvalId: shown.approvalId });
    const content = await approvalContent(approval, shown.index);
    if (content) {
      fill(this.documents, content);
    }
    this.#seen.set(shown.approvalId, approval);
  }

  /** The tabs that there are are others. */
  sync(): void {
    const now = shownAbout("approval");
    for (const [key, { approvalId }] of this.#shown) {
      if (!now.has(key)) {
        const waits = getApproval(this.app.approvals, approvalId);
        if (waits) {
          mention(`"${message(waits.title, 60)}" still waits for your answer`);
        }
        this.#seen.delete(approvalId);
      }
    }
    this.#shown = now;
  }

  /** Opens the diff of a change that begins to wait, where that is wished and in nobody's way. */
  #look(): void {
    const { pending } = this.app.approvals;
    const wished = setting("diff.openAutomatically");
    const fresh = pending.filter((approval) => !this.#opened.has(approval.approvalId));
    if (!wished) {
      for (const { approvalId } of fresh) {
        this.#opened.add(approvalId);
      }
      return;
    }
    // Nor is a diff taken away that somebody looks at: its keys would answer another one.
    if (this.#shown.size > 0 || this.#later !== undefined || shownIn(activeTab())) {
      return;
    }
    const approval = fresh.find(
      (each) =>
        proposedChanges(each).length > 0 &&
        (this.isVisible(each.sessionId) || this.isVisible(each.rootId)),
    );
    if (!approval) {
      return;
    }
    const busy = this.#typed + TYPING_MS - Date.now();
    if (busy > 0) {
      this.#later = setTimeout(() => {
        this.#later = undefined;
        this.#look();
      }, busy);
      return;
    }
    this.#opened.add(approval.approvalId);
    const { approvalId } = approval;
    this.#came = { approvalId, at: Infinity };
    this.show(approvalId, 0, { preserveFocus: true }).then(
      () => {
        this.#came = { approvalId, at: Date.now() };
      },
      (fault: unknown) => {
        this.#came = undefined;
        this.app.log.warn(`the diff of ${approvalId} was not opened: ${String(fault)}`);
      },
    );
  }
}

function subject(approval: Approval): ShownApproval {
  return { about: "approval", approvalId: approval.approvalId, index: 0 };
}
