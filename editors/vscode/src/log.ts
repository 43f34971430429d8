/** Where the extension writes down what happens: an output channel, read by whoever has to help. */
import type * as vscode from "vscode";
import { visible } from "./model/text";
import { masked } from "./server/secrets";

export interface Log {
  trace(text: string): void;
  debug(text: string): void;
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
}

/** Of one entry so many characters are kept. */
const LONGEST = 20_000;

function written(text: string): string {
  const cut =
    text.length > LONGEST ? `${text.slice(0, LONGEST)}… (${text.length} characters)` : text;
  return visible(masked(cut));
}

/**
 * A channel that never holds a secret, nor anything that acts on whoever reads it. It is closed while the
 * window ends, before all that has something to say has ended: what comes after that is not written, and
 * stops nobody.
 */
export function channelLog(channel: vscode.LogOutputChannel): Log {
  const writer = (level: keyof Log) => (text: string) => {
    try {
      channel[level](written(text));
    } catch {
      // closed
    }
  };
  return {
    trace: writer("trace"),
    debug: writer("debug"),
    info: writer("info"),
    warn: writer("warn"),
    error: writer("error"),
  };
}
