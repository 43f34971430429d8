/** Asks a person for a line; tells them in passing what came of it. */
import * as vscode from "vscode";
import { label, message, oneLine } from "../model/text";

/** How long (ms) what is told in passing stands in the status bar. */
const PASSING_MS = 6000;

export interface AskOptions {
  /** What more there is to know; links and icons in it stay text. */
  readonly about?: string;
  /** Nothing typed counts, too. */
  readonly blank?: boolean;
}

/**
 * A line, its ends trimmed.
 * @throws CancellationError when nothing was said
 */
export async function askLine(title: string, options: AskOptions = {}): Promise<string> {
  const typed = await vscode.window.showInputBox({
    title: oneLine(title, 200),
    ignoreFocusOut: true,
    ...(options.about === undefined ? {} : { prompt: message(label(options.about, 1000)) }),
  });
  const said = typed?.trim();
  if (said === undefined || (said === "" && !options.blank)) {
    throw new vscode.CancellationError();
  }
  return said;
}

export interface Offer<T> extends vscode.QuickPickItem {
  readonly value: T;
}

/**
 * One of several.
 * @throws CancellationError when none was chosen
 */
export async function askOne<T>(title: string, offers: readonly Offer<T>[]): Promise<T> {
  const picked = await vscode.window.showQuickPick(offers, {
    title: oneLine(title, 200),
    ignoreFocusOut: true,
    matchOnDescription: true,
  });
  if (!picked) {
    throw new vscode.CancellationError();
  }
  return picked.value;
}

/** What went well, said where it is in nobody's way. */
export function tell(said: string): void {
  void vscode.window.setStatusBarMessage(`Callboard: ${label(said, 200)}`, PASSING_MS);
}
