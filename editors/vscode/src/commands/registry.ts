import * as vscode from "vscode";
import type { App } from "../app";
import { message } from "../model/text";
import { explain } from "../server/errors";

/** Longest message (characters) that is told; the log has all of it. */
const LONGEST = 1000;

/** What a command does; what it throws becomes one message. */
export type Command = (...args: unknown[]) => unknown;

/** Registers commands, so that a failure is told in one message, with a way to the log. */
export function register(
  context: vscode.ExtensionContext,
  app: App,
  commands: Record<string, Command>,
): void {
  for (const [name, run] of Object.entries(commands)) {
    context.subscriptions.push(
      vscode.commands.registerCommand(name, async (...args: unknown[]) => {
        try {
          return await run(...args);
        } catch (fault) {
          await failed(app, fault);
          return undefined;
        }
      }),
    );
  }
}

/** Tells a failure, as in "The session cannot be renamed: …". */
export async function failed(app: App, fault: unknown, doing?: string): Promise<void> {
  if (fault instanceof vscode.CancellationError) {
    return; // the person has changed their mind
  }
  const why = explain(fault);
  app.log.error(fault instanceof Error && fault.stack ? fault.stack : why);
  const said = doing === undefined ? why : `${doing}: ${why}`;
  const show = "Show Log";
  if ((await vscode.window.showErrorMessage(message(said, LONGEST), show)) === show) {
    await vscode.commands.executeCommand("callboard.showLog");
  }
}
