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

/** A channel that never holds a secret, nor anything that acts on whoever reads it. */
export function channelLog(channel: vscode.LogOutputChannel): Log {
  return {
    trace: (text) => {
      channel.trace(written(text));
    },
    debug: (text) => {
      channel.debug(written(text));
    },
    info: (text) => {
      channel.info(written(text));
    },
    warn: (text) => {
      channel.warn(written(text));
    },
    error: (text) => {
      channel.error(written(text));
    },
  };
}
