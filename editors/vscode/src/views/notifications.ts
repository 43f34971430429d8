/** Tells what wants somebody, and what has ended, while they do not look at it. */
import type { Approval, OptionKind } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App, ApprovalEnd, TurnEnd } from "../app";
import { called } from "../commands/called";
import { setting } from "../config";
import { getApproval } from "../model/approvals";
import { list, plural } from "../model/loose";
import { approvalNotice } from "../model/notice";
import { message } from "../model/text";

/** What is looked at of the chats. */
export interface Looked {
  isVisible(sessionId: string): boolean;
}

/** More than so many that come together are told in one notification. */
const SINGLY = 3;

const ALLOW = "Allow Once";
const DENY = "Deny";
const SHOW = "Show";
const RESTART = "Restart Server";
const LOG = "Show Log";

export class Notifications implements vscode.Disposable {
  /** Approvals that were told, or were in view when they came: each is told once. */
  readonly #told = new Set<string>();
  readonly #offs: (() => void)[];
  #failed = false;

  constructor(
    private readonly app: App,
    private readonly chats: Looked,
  ) {
    this.#offs = [
      app.on("approvals", () => {
        this.#approvals();
      }),
      app.on("approvalEnded", (end) => {
        this.#ended(end);
      }),
      app.on("turnEnded", (end) => {
        this.#finished(end);
      }),
      app.on("server", () => {
        this.#server();
      }),
    ];
  }

  dispose(): void {
    for (const off of this.#offs) {
      off();
    }
  }

  #inView(...sessions: string[]): boolean {
    return vscode.window.state.focused && sessions.some((id) => this.chats.isVisible(id));
  }

  #approvals(): void {
    const when = setting("approvals.notify");
    const fresh = this.app.approvals.pending.filter(
      ({ approvalId }) => !this.#told.has(approvalId),
    );
    const wanted = fresh.filter(
      ({ sessionId, rootId }) =>
        when === "always" || (when === "unfocused" && !this.#inView(sessionId, rootId)),
    );
    for (const { approvalId } of fresh) {
      this.#told.add(approvalId);
    }
    if (wanted.length > SINGLY) {
      void this.#several(wanted.length);
      return;
    }
    for (const approval of wanted) {
      void this.#ask(approval);
    }
  }

  #ended({ approvalId }: ApprovalEnd): void {
    this.#told.delete(approvalId);
  }

  async #several(count: number): Promise<void> {
    const chosen = await vscode.window.showWarningMessage(
      `${plural(count, "approval")} wait for you.`,
      SHOW,
    );
    if (chosen === SHOW) {
      await vscode.commands.executeCommand("callboard.nextApproval");
    }
  }

  async #ask(approval: Approval): Promise<void> {
    const { approvalId } = approval;
    await this.#know(approval.rootId);
    const root = this.app.sessions.byId.get(approval.rootId);
    const notice = approvalNotice(approval, called(this.app, approval.rootId), root?.cwd);
    const offers = (kind: OptionKind): boolean =>
      approval.kind !== "question" && list(approval.options).some((each) => each.kind === kind);
    const chosen = await vscode.window.showWarningMessage(
      notice.text,
      ...(notice.whole && offers("allow_once") ? [ALLOW] : []),
      ...(offers("reject_once") ? [DENY] : []),
      SHOW,
    );
    if (chosen === undefined) {
      return;
    }
    // A notification stays as long as it likes; what it asks about may have ended.
    if (!getApproval(this.app.approvals, approvalId)) {
      void vscode.window.showInformationMessage(
        `“${message(approval.title, 60)}” was answered already, or its turn has ended.`,
      );
      return;
    }
    const command = chosen === ALLOW ? "approveOnce" : chosen === DENY ? "deny" : "nextApproval";
    await vscode.commands.executeCommand(`callboard.${command}`, approvalId);
  }

  /** One that ran is gone for good. That there was none to begin with is said where it is wanted. */
  #server(): void {
    const { state, failure } = this.app.server;
    const failed = state === "failed";
    if (failed && !this.#failed && this.app.greeted) {
      void this.#lost(message(failure?.message ?? "The server has ended.", 600));
    }
    this.#failed = failed;
  }

  async #lost(why: string): Promise<void> {
    const chosen = await vscode.window.showErrorMessage(`Callboard: ${why}`, RESTART, LOG);
    if (chosen !== undefined) {
      const command = chosen === RESTART ? "restartServer" : "showLog";
      await vscode.commands.executeCommand(`callboard.${command}`);
    }
  }

  /** As a window starts, what waits may be known before the session that it is of: then nobody knows its name. */
  async #know(sessionId: string): Promise<void> {
    if (!this.app.sessions.byId.has(sessionId)) {
      try {
        const { session } = await this.app.request("session/get", { sessionId });
        this.app.putSession(session);
      } catch {
        // It is told without the name.
      }
    }
  }

  /** The end of an agent's turn is for the one that started it. */
  #finished({ sessionId, outcome }: TurnEnd): void {
    const session = this.app.sessions.byId.get(sessionId);
    // What is not known yet is an agent that has just begun.
    if (!setting("notifications.onFinish") || !session || session.parentId != null) {
      return;
    }
    if (this.#inView(sessionId)) {
      return;
    }
    const name = called(this.app, sessionId);
    if (outcome === "completed") {
      void this.#show(sessionId, vscode.window.showInformationMessage(`${name} is done.`, SHOW));
    } else if (outcome === "failed" || outcome === "timed_out") {
      const how = outcome === "failed" ? "has failed" : "took longer than it may";
      void this.#show(sessionId, vscode.window.showWarningMessage(`${name} ${how}.`, SHOW));
    }
  }

  async #show(sessionId: string, chosen: Thenable<string | undefined>): Promise<void> {
    if ((await chosen) === SHOW) {
      await vscode.commands.executeCommand("callboard.openSession", sessionId);
    }
  }
}
