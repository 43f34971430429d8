/** Answers approvals from anywhere: the palette, a key, the status bar, a notification. */
import type { Approval } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import { choices, isAllowing, who } from "../model/answers";
import { approvalsOf, nextApproval } from "../model/approvals";
import { hold, newArrivals, updateArrivals } from "../model/arrivals";
import { label, message, oneLine } from "../model/text";
import { CallError } from "../server/errors";
import type { Chats } from "../views/chats";
import { register } from "./registry";

/** Longest command (characters) that a list shows in a line; the chat shows all of it. */
const IN_LIST = 300;

/** The words that say what is asked, whole as far as a line goes. */
export function asks(approval: Approval, width = IN_LIST): string {
  const { subject } = approval;
  const what =
    subject.type === "command" && "command" in subject ? subject.command : approval.title;
  return oneLine(what, width);
}

export function registerApprovals(context: vscode.ExtensionContext, app: App, chats: Chats): void {
  const arrivals = newArrivals();
  let before: readonly Approval[] = [];
  let shown: string | undefined;
  const off = app.on("approvals", () => {
    const now = app.approvals.pending;
    updateArrivals(arrivals, before, now, Date.now());
    before = now;
  });
  context.subscriptions.push({ dispose: off });

  /** The only one that can be meant, or the one that is picked from those that wait. */
  async function meant(given: unknown): Promise<Approval> {
    const { pending } = app.approvals;
    const named =
      typeof given === "string" ? pending.find((each) => each.approvalId === given) : undefined;
    if (typeof given === "string" && !named) {
      throw new CallError(0, "It does not wait any more: it was answered, or its turn has ended.");
    }
    const focused = app.focused;
    const here = focused === undefined ? [] : approvalsOf(app.approvals, focused);
    const candidates = named ? [named] : here.length > 0 ? here : pending;
    const [only, ...others] = candidates;
    if (!only) {
      throw new CallError(0, "Nothing waits for an answer.");
    }
    if (others.length === 0) {
      const held = hold(arrivals, only, Date.now());
      if (held !== undefined && given === undefined) {
        throw new CallError(0, held);
      }
      return only;
    }
    const picked = await vscode.window.showQuickPick(
      candidates.map((approval) => ({
        label: label(asks(approval)),
        description: `${label(approval.risk ?? "medium", 20)} risk`,
        detail: label(who(approval)),
        approval,
      })),
      { title: "Which one?", placeHolder: `${candidates.length} approvals wait` },
    );
    if (!picked) {
      throw new vscode.CancellationError();
    }
    return picked.approval;
  }

  function answering(kinds: readonly string[], withNote = false) {
    return async (given?: unknown): Promise<void> => {
      const approval = await meant(given);
      const choice = choices(approval).find(({ option }) => kinds.includes(option.kind));
      if (!choice) {
        throw new CallError(0, `"${oneLine(approval.title, 60)}" does not offer that answer.`);
      }
      let note: string | undefined;
      if (withNote || choice.note === "answer") {
        note = await vscode.window.showInputBox({
          title: isAllowing(choice.option) ? "Answer" : "Deny, say why",
          // Below a box the editor makes links of `[text](command:…)` as well, and draws icons.
          prompt: message(label(asks(approval))),
          placeHolder: withNote ? "What the agent should know, or do instead" : "",
        });
        if (note === undefined) {
          throw new vscode.CancellationError();
        }
      }
      const answered = await app.answer(approval, choice.option, note === "" ? undefined : note);
      if (!answered.taken) {
        void vscode.window.showInformationMessage(message(answered.message));
      }
    };
  }

  register(context, app, {
    "callboard.nextApproval": async (given) => {
      const approval =
        typeof given === "string" && app.approvals.pending.some((each) => each.approvalId === given)
          ? app.approvals.pending.find((each) => each.approvalId === given)
          : nextApproval(app.approvals, shown);
      if (!approval) {
        void vscode.window.setStatusBarMessage("Callboard: nothing waits for an answer", 4000);
        return;
      }
      shown = approval.approvalId;
      // An agent's approval stands in the chat of its root, too; there its words have their place.
      const current = chats.current?.sessionId;
      const where = current === approval.sessionId ? approval.sessionId : approval.rootId;
      const chat = await chats.open(where);
      chat.say({ type: "focus", approvalId: approval.approvalId });
    },
    "callboard.approveOnce": answering(["allow_once"]),
    "callboard.approveSession": answering(["allow_session"]),
    "callboard.approveProject": answering(["allow_always"]),
    "callboard.deny": answering(["reject_once"]),
    "callboard.denyWithNote": answering(["reject_once"], true),
  });
}
