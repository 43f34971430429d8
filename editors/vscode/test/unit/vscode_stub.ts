/**
 * What of VS Code the units need, in so far as it can be had without one. A test says by `stub` what the
 * person chooses and how the window is, and finds there what they were shown.
 */
type Listener<T> = (value: T) => void;

export class Disposable {
  constructor(private readonly end: () => void = () => undefined) {}

  static from(...all: { dispose(): void }[]): Disposable {
    return new Disposable(() => {
      for (const each of all) {
        each.dispose();
      }
    });
  }

  dispose(): void {
    this.end();
  }
}

export class EventEmitter<T> {
  readonly #listeners = new Set<Listener<T>>();

  readonly event = (listener: Listener<T>): Disposable => {
    this.#listeners.add(listener);
    return new Disposable(() => {
      this.#listeners.delete(listener);
    });
  };

  fire(value: T): void {
    for (const listener of [...this.#listeners]) {
      listener(value);
    }
  }

  dispose(): void {
    this.#listeners.clear();
  }
}

export class Uri {
  private constructor(
    readonly scheme: string,
    readonly path: string,
  ) {}

  static file(path: string): Uri {
    return new Uri("file", path);
  }

  get fsPath(): string {
    return this.path;
  }

  toString(): string {
    return `${this.scheme}://${this.path}`;
  }
}

export class ThemeColor {
  constructor(readonly id: string) {}
}

export class ThemeIcon {
  constructor(
    readonly id: string,
    readonly color?: ThemeColor,
  ) {}
}

export class CancellationError extends Error {}

export const TreeItemCollapsibleState = { None: 0, Collapsed: 1, Expanded: 2 } as const;
export const QuickPickItemKind = { Separator: -1, Default: 0 } as const;
export const StatusBarAlignment = { Left: 1, Right: 2 } as const;
export const ProgressLocation = { SourceControl: 1, Window: 10, Notification: 15 } as const;

export class TreeItem {
  [field: string]: unknown;

  constructor(
    readonly label: string,
    readonly collapsibleState: number = TreeItemCollapsibleState.None,
  ) {}
}

interface Shown {
  kind: "information" | "warning" | "error";
  message: string;
  /** The buttons. */
  items: string[];
}

interface Bar {
  [field: string]: unknown;
  show(): void;
  dispose(): void;
}

const configured = new EventEmitter<{ affectsConfiguration(section: string): boolean }>();
const view = {
  visible: true,
  selection: [] as unknown[],
  badge: undefined as unknown,
  message: "",
  description: "",
};
const seen = new EventEmitter<{ visible: boolean }>();

const nothing = (): undefined => undefined;

/** The person, and what they see. */
export const stub = {
  settings: {} as Record<string, unknown>,
  focused: true,
  folders: [] as { uri: Uri; name: string }[],
  shown: [] as Shown[],
  /** Which button the person presses, by what is said to them. */
  presses: nothing as (shown: Shown) => string | undefined | Promise<string>,
  /** Which of the entries of a list the person picks. */
  picks: nothing as (items: readonly { label: string }[]) => unknown,
  /** What the person types into a box, by what it asks for. */
  types: nothing as (asked: { title?: string; prompt?: string }) => string | undefined,
  executed: [] as [command: string, ...args: unknown[]][],
  registered: new Map<string, (...args: unknown[]) => unknown>(),
  /** What was told in passing, in the status bar. */
  passing: [] as string[],
  bars: [] as Bar[],
  view,

  set(settings: Record<string, unknown>): void {
    Object.assign(stub.settings, settings);
    configured.fire({
      affectsConfiguration: (section) =>
        Object.keys(settings).some((name) => `${name}.`.startsWith(`${section}.`)),
    });
  },

  look(visible: boolean): void {
    view.visible = visible;
    seen.fire({ visible });
  },

  reset(): void {
    stub.settings = {};
    stub.focused = true;
    stub.folders = [];
    stub.shown = [];
    stub.presses = nothing;
    stub.picks = nothing;
    stub.types = nothing;
    stub.executed = [];
    stub.registered.clear();
    stub.passing = [];
    stub.bars = [];
    Object.assign(view, {
      visible: true,
      selection: [],
      badge: undefined,
      message: "",
      description: "",
    });
  },
};

function say(kind: Shown["kind"]) {
  return (message: string, ...rest: unknown[]): Promise<string | undefined> => {
    const items = rest.filter((each): each is string => typeof each === "string");
    const shown = { kind, message, items };
    stub.shown.push(shown);
    return Promise.resolve(stub.presses(shown));
  };
}

const never = (): Disposable => new Disposable();

export const window = {
  get state(): { focused: boolean } {
    return { focused: stub.focused };
  },
  showInformationMessage: say("information"),
  showWarningMessage: say("warning"),
  showErrorMessage: say("error"),
  showQuickPick: (items: readonly { label: string }[]): Promise<unknown> =>
    Promise.resolve(stub.picks(items)),
  showInputBox: (asked: { title?: string; prompt?: string }): Promise<string | undefined> =>
    Promise.resolve(stub.types(asked)),
  setStatusBarMessage: (text: string): Disposable => {
    stub.passing.push(text);
    return never();
  },
  createStatusBarItem: (): Bar => {
    const bar: Bar = { show: () => undefined, dispose: () => undefined };
    stub.bars.push(bar);
    return bar;
  },
  createTreeView: (): object =>
    Object.assign(view, {
      onDidChangeVisibility: seen.event,
      onDidExpandElement: never,
      reveal: () => Promise.resolve(),
      dispose: () => undefined,
    }),
  onDidChangeWindowState: never,
  onDidChangeActiveTextEditor: never,
  onDidChangeTextEditorSelection: never,
};

export const commands = {
  registerCommand: (name: string, run: (...args: unknown[]) => unknown): Disposable => {
    stub.registered.set(name, run);
    return never();
  },
  executeCommand: (command: string, ...args: unknown[]): Promise<unknown> => {
    stub.executed.push([command, ...args]);
    return Promise.resolve(undefined);
  },
};

export const workspace = {
  isTrusted: true,
  get workspaceFolders(): typeof stub.folders {
    return stub.folders;
  },
  getConfiguration: (section: string): { get(name: string): unknown } => ({
    get: (name: string): unknown => stub.settings[`${section}.${name}`],
  }),
  onDidChangeConfiguration: configured.event,
  onDidChangeWorkspaceFolders: never,
};

export const env = { appName: "Code", remoteName: undefined };
export const version = "1.100.0";
