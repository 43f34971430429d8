/** The settings, each of the kind that it is declared to be, whatever a file of settings holds. */
import * as vscode from "vscode";

type Reader<T> = (value: unknown) => T | undefined;

interface Setting<T> {
  read: Reader<T>;
  /** As in package.json. */
  initially: T;
}

const text: Reader<string> = (value) => (typeof value === "string" ? value : undefined);
const flag: Reader<boolean> = (value) => (typeof value === "boolean" ? value : undefined);

const words: Reader<readonly string[]> = (value) =>
  Array.isArray(value) && value.every((word) => typeof word === "string") ? value : undefined;

const table: Reader<Readonly<Record<string, string>>> = (value) =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((each) => typeof each === "string")
    ? (value as Record<string, string>)
    : undefined;

function oneOf<const T extends readonly string[]>(...words: T): Reader<T[number]> {
  return (value) => words.find((word) => word === value);
}

function whole(least: number, most: number): Reader<number> {
  return (value) =>
    typeof value === "number" && Number.isInteger(value) && value >= least && value <= most
      ? value
      : undefined;
}

function declare<T>(read: Reader<T>, initially: NoInfer<T>): Setting<T> {
  return { read, initially };
}

/** All settings, by their names below `callboard`. */
export const SETTINGS = {
  "approvals.notify": declare(oneOf("always", "unfocused", "never"), "unfocused"),
  "chat.fontSize": declare(whole(0, 40), 0),
  "chat.location": declare(oneOf("sidebar", "editor"), "sidebar"),
  "chat.sendKey": declare(oneOf("enter", "modEnter"), "enter"),
  "context.includeSelection": declare(flag, true),
  "diff.openAutomatically": declare(flag, false),
  "notifications.onFinish": declare(flag, true),
  "server.args": declare(words, ["serve"]),
  "server.env": declare(table, {}),
  "server.path": declare(text, ""),
  "sessions.groupBy": declare(oneOf("state", "folder", "none"), "state"),
  "sessions.recentCount": declare(whole(1, 100), 5),
  "trace.server": declare(oneOf("off", "messages", "verbose"), "off"),
  "usage.show": declare(flag, true),
};

type Declared = typeof SETTINGS;
export type SettingName = keyof Declared;
export type SettingValue<N extends SettingName> = Declared[N]["initially"];

const SECTION = "callboard";

/** A setting's value; what is of another kind than it must be counts as not set. */
export function setting<N extends SettingName>(name: N): SettingValue<N> {
  const { read, initially } = SETTINGS[name] as Setting<SettingValue<N>>;
  return read(vscode.workspace.getConfiguration(SECTION).get(name)) ?? initially;
}

/** Settings whose values are of no use, and are left at what they are at first. */
export function wrongSettings(): SettingName[] {
  const settings = vscode.workspace.getConfiguration(SECTION);
  return settingNames().filter((name) => {
    const value: unknown = settings.get(name);
    return value !== undefined && SETTINGS[name].read(value) === undefined;
  });
}

/** Settings that somebody has given another value than the one at first. */
export function changedSettings(): SettingName[] {
  return settingNames().filter(
    (name) => JSON.stringify(setting(name)) !== JSON.stringify(SETTINGS[name].initially),
  );
}

export function settingNames(): SettingName[] {
  return Object.keys(SETTINGS) as SettingName[];
}

/** Calls `listener` when one of these settings, or one below it, is another. */
export function onSettings(
  names: readonly (SettingName | "server")[],
  listener: () => void,
): vscode.Disposable {
  return vscode.workspace.onDidChangeConfiguration((change) => {
    if (names.some((name) => change.affectsConfiguration(`${SECTION}.${name}`))) {
      listener();
    }
  });
}
