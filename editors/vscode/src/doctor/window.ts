/** What the doctor finds in this window: versions, settings, what the environment says. Pure. */
import { oneLine } from "../model/text";
import { finding, type Finding } from "./findings";

export interface WindowLook {
  readonly editor: string;
  readonly version: string;
  readonly extension: string;
  /** As "wsl" or "ssh-remote"; undefined where the window is on this machine. */
  readonly remote?: string | undefined;
  readonly trusted: boolean;
  readonly folders: readonly string[];
}

export function windowFindings(look: WindowLook): Finding[] {
  const folders = look.folders.map((folder) => oneLine(folder, 200)).join(", ");
  return [
    finding("ok", `${look.editor} ${look.version}, extension ${look.extension}`),
    ...(look.remote === undefined
      ? []
      : [finding("info", `Remote window (${look.remote}): server and store are on that machine.`)]),
    look.folders.length === 0
      ? finding("warn", "No folder is open.", "An agent works in a folder: open one first.")
      : finding("ok", `Folders: ${folders}`),
    look.trusted
      ? finding("ok", "The workspace is trusted.")
      : finding("warn", "Restricted Mode.", "“Callboard: Manage Workspace Trust” changes that."),
  ];
}

export interface SettingsLook {
  /** Names and values of those that are not as they are at first. */
  readonly changed: readonly (readonly [name: string, value: unknown])[];
  /** Names of those with a value that is of no use. */
  readonly wrong: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Their values say what is wrong, and are no secret. */
const NAMED = [
  "CALLBOARD_STORE",
  "CALLBOARD_CONFIG_DIR",
  "CALLBOARD_MODEL",
  "CALLBOARD_FEATURES",
  "OPENAI_MODEL",
  "ANTHROPIC_MODEL",
];
/** That they are set is all that a document which somebody shares may tell. */
const SECRET = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"];

function valueOf(name: string, value: unknown): string {
  if (name === "server.env") {
    return `${Object.keys(value as object).join(", ")} (values are not shown)`;
  }
  return oneLine(JSON.stringify(value), 200);
}

export function settingsFindings({ changed, wrong, env }: SettingsLook): Finding[] {
  return [
    ...wrong.map((name) =>
      finding(
        "warn",
        `The value of callboard.${name} is none that it can have; it is left at what it is at first.`,
        "The settings editor says what it can be.",
      ),
    ),
    ...changed.map(([name, value]) =>
      finding("info", `callboard.${name}: ${valueOf(name, value)}`),
    ),
    ...(changed.length + wrong.length === 0
      ? [finding("ok", "All settings are as they are at first.")]
      : []),
    ...NAMED.flatMap((name) => {
      const value = env[name];
      return value === undefined ? [] : [finding("info", `${name}=${oneLine(value, 200)}`)];
    }),
    ...SECRET.filter((name) => env[name] !== undefined).map((name) =>
      finding("info", `${name} is set`),
    ),
  ];
}
