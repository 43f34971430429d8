/** Answers what the extension asks by VS Code's dialogs and notifications, in place of a person. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import * as vscode from "vscode";

/** What may be asked, each by the function that asks it. */
const ASKING = [
  "showInformationMessage",
  "showWarningMessage",
  "showErrorMessage",
  "showOpenDialog",
  "showSaveDialog",
  "showQuickPick",
] as const;

export type Asking = (typeof ASKING)[number];

/** What was asked: the text or the title, and the buttons or the entries that there were. */
export interface Asked {
  by: Asking;
  words: string;
  choices: unknown[];
}

/** The answer to one question; what a button says stands for the button. */
export type Answer = (asked: Asked) => unknown;

/** Each extension has an API of its own; this is that of ours. */
function windowOfOurs(): Record<Asking, unknown> {
  const extension = vscode.extensions.getExtension("callboard.callboard");
  assert.ok(extension, "it is not installed");
  const ours = createRequire(join(extension.extensionPath, "package.json"))("vscode") as {
    window: Record<Asking, unknown>;
  };
  assert.notEqual(ours.window, vscode.window);
  return ours.window;
}

function asked(by: Asking, given: unknown[]): Asked {
  const [first, second, ...rest] = given;
  if (by === "showOpenDialog" || by === "showSaveDialog") {
    return { by, words: (first as vscode.OpenDialogOptions).title ?? "", choices: [] };
  } else if (by === "showQuickPick") {
    const { title } = second as vscode.QuickPickOptions;
    return { by, words: title ?? "", choices: first as unknown[] };
  }
  return {
    by,
    words: String(first),
    choices: typeof second === "string" ? [second, ...rest] : rest,
  };
}

/**
 * Does something while questions are answered in order, and tells what was asked. Every answer must be asked
 * for, and what is asked beyond them is left unanswered.
 */
export async function answering(answers: Answer[], act: () => unknown): Promise<Asked[]> {
  const window = windowOfOurs();
  const kept = ASKING.map((by) => [by, window[by]] as const);
  const heard: Asked[] = [];
  const left = [...answers];
  let answered: () => void = () => undefined;
  const all = new Promise<void>((resolve) => {
    answered = resolve;
  });
  for (const by of ASKING) {
    window[by] = (...given: unknown[]): Promise<unknown> => {
      const question = asked(by, given);
      heard.push(question);
      const answer = left.shift();
      if (left.length === 0) {
        answered();
      }
      return Promise.resolve(answer?.(question));
    };
  }
  try {
    await act();
    await all;
  } finally {
    for (const [by, function_] of kept) {
      window[by] = function_;
    }
  }
  return heard;
}

/** Presses a button, which must be there. */
export function press(button: string): Answer {
  return ({ words, choices }) => {
    assert.ok(choices.includes(button), `“${words}” has ${JSON.stringify(choices)}`);
    return button;
  };
}
