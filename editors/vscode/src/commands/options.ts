/** Options of agents that are programs of their own, offered where models and modes are: each leads to its values. */
import type { SessionOption } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import { list } from "../model/loose";
import { valueOf } from "../model/options";
import { label } from "../model/text";

/** An entry of a list: what it does when it is picked; a heading does nothing. */
export interface Choice extends vscode.QuickPickItem {
  pick?: () => Promise<void>;
}

/** As in "Model of codex". */
function whose(option: SessionOption): string {
  return `${label(option.name, 60)} of ${label(option.profile, 40)}`;
}

function described(words: string | null | undefined): { detail?: string } {
  const detail = label(words ?? "", 200);
  return detail === "" ? {} : { detail };
}

/** Entries for options, below a heading; none where there are none. */
export function optionChoices(
  app: App,
  sessionId: string,
  options: readonly SessionOption[],
): Choice[] {
  const choices = options.map((option) => ({
    label: whose(option),
    description: label(valueOf(option), 60),
    ...described(option.description),
    pick: () => pickValue(app, sessionId, option),
  }));
  const heading = { label: "Options of agents", kind: vscode.QuickPickItemKind.Separator };
  return choices.length > 0 ? [heading, ...choices] : [];
}

async function pickValue(app: App, sessionId: string, option: SessionOption): Promise<void> {
  const name = whose(option);
  const picked = await vscode.window.showQuickPick(
    // What is set stands first: Enter alone changes nothing.
    [...list(option.values)]
      .sort((a, b) => Number(b.value === option.value) - Number(a.value === option.value))
      .map((each) => ({
        label: `${each.value === option.value ? "$(check) " : ""}${label(each.name, 100)}`,
        ...described(each.description),
        value: each.value,
      })),
    { title: name, placeHolder: "It holds from the next prompt on", matchOnDetail: true },
  );
  if (picked) {
    const { session } = await app.change("session/update", {
      sessionId,
      options: { [`${option.profile}/${option.optionId}`]: picked.value },
    });
    app.putSession(session);
  }
}
