/** What the list of sessions leaves out, chosen at the top of the window. */
import * as vscode from "vscode";
import { NO_FILTER, type SessionFilter } from "../model/sessionList";

export interface Filtered {
  readonly filter: SessionFilter;
  show(filter: SessionFilter): Promise<void>;
}

interface Choice extends vscode.QuickPickItem {
  filter?: SessionFilter;
}

function chosen(mark: boolean, text: string): string {
  return mark ? `$(check) ${text}` : text;
}

export async function filterSessions(tree: Filtered): Promise<void> {
  const { filter } = tree;
  const picked = await vscode.window.showQuickPick<Choice>(
    [
      {
        label: chosen(!filter.everywhere, "This folder"),
        description: "and all that need you",
        filter: { ...filter, everywhere: false },
      },
      {
        label: chosen(filter.everywhere, "All folders"),
        filter: { ...filter, everywhere: true },
      },
      { label: "", kind: vscode.QuickPickItemKind.Separator },
      {
        label: chosen(filter.words !== "", "With words…"),
        description: filter.words === "" ? "" : filter.words.replaceAll("$(", "\\$("),
        detail: "In the title, agent, model or folder",
      },
      ...(filter.words === ""
        ? []
        : [{ label: "Without a filter", filter: { ...NO_FILTER, everywhere: filter.everywhere } }]),
    ],
    { title: "Filter Sessions", placeHolder: "Which sessions to show" },
  );
  if (!picked) {
    return;
  }
  if (picked.filter) {
    await tree.show(picked.filter);
    return;
  }
  const words = await vscode.window.showInputBox({
    title: "Filter Sessions",
    prompt: "Words in the title, agent, model or folder. Nothing: all sessions",
    value: filter.words,
  });
  if (words !== undefined) {
    await tree.show({ ...filter, words: words.trim() });
  }
}
