/**
 * What goes along with the next prompt of a chat: files, or lines of them. One of them follows the person:
 * the selection of the editor that they were at last; the others they added.
 */
import * as path from "node:path";
import type { ContextItem } from "@callboard/protocol";
import * as vscode from "vscode";
import { oneLine } from "./model/text";
import type { ContextChip } from "./shared/chat";

/** Lines of a file, both ends among them. */
interface Lines {
  first: number;
  last: number;
}

interface Place {
  uri: vscode.Uri;
  lines?: Lines;
}

/** The id of the chip that follows the person. */
const HERE = "here";

/** Where an editor of a file is. */
function placeOf(editor: vscode.TextEditor | undefined): Place | undefined {
  if (editor?.document.uri.scheme !== "file") {
    return undefined;
  }
  const { selection, document } = editor;
  return selection.isEmpty
    ? { uri: document.uri }
    : { uri: document.uri, lines: linesOf(selection) };
}

/** The addresses of all that tabs show as text. */
function shownFiles(): string[] {
  return vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .flatMap(({ input }) => {
      if (input instanceof vscode.TabInputTextDiff) {
        return [input.original.toString(), input.modified.toString()];
      }
      return input instanceof vscode.TabInputText ? [input.uri.toString()] : [];
    });
}

export class PromptContext implements vscode.Disposable {
  readonly #added = new Map<string, Place>();
  #here: Place | undefined;
  /** The place that was sent or switched off last: it comes back when the person goes elsewhere. */
  #off: string | undefined;
  readonly #watching: vscode.Disposable;

  /**
   * @param roots folders that the agent may see; what lies elsewhere is not offered, since the server would
   * refuse all of the prompt
   * @param wanted whether a chip is to follow the person
   */
  constructor(
    private readonly roots: () => readonly string[],
    private readonly wanted: () => boolean,
    private readonly changed: () => void,
  ) {
    this.#here = placeOf(vscode.window.activeTextEditor);
    this.#watching = vscode.Disposable.from(
      vscode.window.onDidChangeActiveTextEditor((editor) => {
        this.#look(editor);
      }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor === vscode.window.activeTextEditor) {
          this.#look(textEditor);
        }
      }),
      vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
        if (closed.length > 0) {
          this.#forgetClosed();
        }
      }),
    );
  }

  dispose(): void {
    this.#watching.dispose();
  }

  /** The person is at a place. What was last stays, when they go to what is no file. */
  #look(editor: vscode.TextEditor | undefined): void {
    const place = placeOf(editor);
    if (!place) {
      return;
    }
    const before = this.#hereKey();
    this.#here = place;
    const now = this.#hereKey();
    if (now !== before) {
      if (this.#off !== undefined && this.#off !== now) {
        this.#off = undefined;
      }
      this.changed();
    }
  }

  /** A file that no tab shows any more is not where the person is. */
  #forgetClosed(): void {
    const here = this.#here?.uri.toString();
    if (here !== undefined && !shownFiles().includes(here)) {
      this.#here = undefined;
      this.changed();
    }
  }

  #hereKey(): string | undefined {
    return this.#here && keyOf(this.#here);
  }

  #follows(): Place | undefined {
    const here = this.#here;
    if (!here || !this.wanted() || !this.#seen(here.uri.fsPath)) {
      return undefined;
    }
    const said = [...this.#added.values()].some(
      (place) => place.uri.toString() === here.uri.toString(),
    );
    return said ? undefined : here;
  }

  #seen(file: string): boolean {
    return this.roots().some((root) => {
      const way = path.relative(root, file);
      return way !== "" && !way.startsWith("..") && !path.isAbsolute(way);
    });
  }

  chips(): ContextChip[] {
    const chips: ContextChip[] = [...this.#added].map(([id, place]) => ({
      id,
      label: labelOf(place),
      title: oneLine(place.uri.fsPath),
      kind: "file",
      on: true,
    }));
    const here = this.#follows();
    if (here) {
      chips.push({
        id: HERE,
        label: labelOf(here),
        title: oneLine(here.uri.fsPath),
        kind: here.lines ? "selection" : "file",
        on: this.#off !== keyOf(here),
      });
    }
    return chips;
  }

  items(): ContextItem[] {
    const places = [...this.#added.values()];
    const here = this.#follows();
    if (here && this.#off !== keyOf(here)) {
      places.push(here);
    }
    return places.map(itemOf);
  }

  /** These went along with a prompt. Where the person is was told by it, and is not told again. */
  sent(items: readonly ContextItem[]): void {
    const told = new Set(items.map((item) => JSON.stringify(item)));
    const went = (place: Place): boolean => told.has(JSON.stringify(itemOf(place)));
    for (const [id, place] of this.#added) {
      if (went(place)) {
        this.#added.delete(id);
      }
    }
    if (this.#here && went(this.#here)) {
      this.#off = this.#hereKey();
    }
    this.changed();
  }

  add(uri: vscode.Uri, selection?: vscode.Selection): void {
    const place: Place = { uri };
    if (selection && !selection.isEmpty) {
      place.lines = linesOf(selection);
    }
    this.#added.set(keyOf(place), place);
    this.changed();
  }

  toggle(id: string): void {
    if (id === HERE) {
      const here = this.#hereKey();
      this.#off = this.#off === here ? undefined : here;
      this.changed();
    }
  }

  remove(id: string): void {
    if (id === HERE) {
      this.#off = this.#hereKey();
    } else {
      this.#added.delete(id);
    }
    this.changed();
  }
}

/** The lines of a selection; one that ends before the first character of a line does not hold that line. */
function linesOf(selection: vscode.Selection): Lines {
  const { start, end } = selection;
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  return { first: start.line, last };
}

function keyOf(place: Place): string {
  const { lines } = place;
  return `${place.uri.toString()}${lines ? `#L${lines.first + 1}-${lines.last + 1}` : ""}`;
}

function labelOf(place: Place): string {
  const name = oneLine(vscode.workspace.asRelativePath(place.uri), 60);
  const { lines } = place;
  return lines ? `${name}:${lines.first + 1}-${lines.last + 1}` : name;
}

function itemOf(place: Place): ContextItem {
  const { uri, lines } = place;
  return {
    uri: uri.toString(),
    ...(lines
      ? {
          range: {
            start: { line: lines.first, character: 0 },
            end: { line: lines.last + 1, character: 0 },
          },
        }
      : {}),
  };
}
