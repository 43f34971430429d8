/** The sides of diffs that are no file: texts that are only read, each known by its address. */
import * as vscode from "vscode";
import { asText, visible } from "../model/text";

export const SCHEME = "callboard-before";

/**
 * `before`: what a file was. `after`: what it is, where no document has that. `now`, `proposed`: around a
 * change that waits. `diff`: only the diff, where nothing else can be shown.
 */
export type Side = "before" | "after" | "now" | "proposed" | "diff";

const SIDES: ReadonlySet<string> = new Set<Side>(["before", "after", "now", "proposed", "diff"]);

/** What a diff is about. */
export type Subject =
  | { readonly about: "change"; readonly sessionId: string; readonly path: string }
  | { readonly about: "approval"; readonly approvalId: string; readonly index: number };

export type About<A extends Subject["about"]> = Extract<Subject, { about: A }>;

export type ShownSide = Subject & { readonly side: Side };

/** One for each thing that can be shown. */
export function keyOf(subject: Subject): string {
  return subject.about === "change"
    ? JSON.stringify([subject.sessionId, subject.path])
    : JSON.stringify([subject.approvalId]);
}

/** `path` is what is seen of the address, and tells the language. */
export function addressOf(subject: Subject, side: Side, path: string): vscode.Uri {
  const shown = visible(path) + (side === "diff" ? ".diff" : "");
  return vscode.Uri.file(shown).with({
    scheme: SCHEME,
    query: JSON.stringify({ ...subject, side }),
  });
}

export function shownBy(uri: vscode.Uri): ShownSide | undefined {
  if (uri.scheme !== SCHEME) {
    return undefined;
  }
  try {
    const told = JSON.parse(uri.query) as Partial<Record<string, unknown>>;
    const { about, side, index } = told;
    if (typeof side !== "string" || !SIDES.has(side)) {
      return undefined;
    }
    return about === "change"
      ? {
          about,
          side: side as Side,
          sessionId: asText(told["sessionId"]),
          path: asText(told["path"]),
        }
      : {
          about: "approval",
          side: side as Side,
          approvalId: asText(told["approvalId"]),
          index: Number(index) || 0,
        };
  } catch {
    return undefined;
  }
}

/** The side of a tab that is ours, if it has one. */
export function shownIn(tab: vscode.Tab | undefined): ShownSide | undefined {
  const input: unknown = tab?.input;
  if (input instanceof vscode.TabInputTextDiff) {
    return shownBy(input.original) ?? shownBy(input.modified);
  }
  return input instanceof vscode.TabInputText ? shownBy(input.uri) : undefined;
}

export function activeTab(): vscode.Tab | undefined {
  return vscode.window.tabGroups.activeTabGroup.activeTab;
}

/** All tabs that show something of ours, with what it is. */
export function shownTabs(): { tab: vscode.Tab; shown: ShownSide }[] {
  return vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .flatMap((tab) => {
      const shown = shownIn(tab);
      return shown ? [{ tab, shown }] : [];
    });
}

/** What the tabs show of one kind, by `keyOf`. */
export function shownAbout<A extends Subject["about"]>(about: A): Map<string, About<A>> {
  return new Map(
    shownTabs().flatMap(({ shown }) =>
      shown.about === about ? [[keyOf(shown), shown as unknown as About<A>] as const] : [],
    ),
  );
}

/** Closes the tabs that show something, and no other. */
export async function closeTabs(subject: Subject): Promise<void> {
  const key = keyOf(subject);
  const tabs = shownTabs().filter(({ shown }) => keyOf(shown) === key);
  await vscode.window.tabGroups.close(
    tabs.map(({ tab }) => tab),
    true,
  );
}

const UNREAD = "This is read as soon as there is a server.\n";

/**
 * So many texts are kept. Not only while they are shown: the end of a document may be told after it was opened
 * anew, and would take its text away.
 */
const KEPT = 100;

export class DiffDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #texts = new Map<string, string>();
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#changed.event;
  readonly #registered = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  /** `missing` brings what somebody goes back to, after its tab was closed. */
  constructor(private readonly missing: (shown: ShownSide) => void) {}

  dispose(): void {
    vscode.Disposable.from(this.#changed, this.#registered).dispose();
  }

  put(uri: vscode.Uri, text: string): void {
    const key = uri.toString();
    const before = this.#texts.get(key);
    this.#texts.delete(key);
    this.#texts.set(key, text);
    for (const oldest of this.#texts.keys()) {
      if (this.#texts.size <= KEPT) {
        break;
      }
      this.#texts.delete(oldest);
    }
    if (before !== text) {
      this.#changed.fire(uri);
    }
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    const text = this.#texts.get(uri.toString());
    const shown = shownBy(uri);
    if (text === undefined && shown) {
      this.missing(shown);
    }
    return text ?? UNREAD;
  }
}
