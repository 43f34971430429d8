// What is written down, and what is not.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type * as vscode from "vscode";

import { channelLog } from "../../src/log";

function channel(write: (line: string) => void): vscode.LogOutputChannel {
  const levels = ["trace", "debug", "info", "warn", "error"];
  const methods = levels.map((level) => [
    level,
    (text: string) => {
      write(`${level} ${text}`);
    },
  ]);
  return Object.fromEntries(methods) as vscode.LogOutputChannel;
}

describe("the log", () => {
  it("is written with its levels, and nothing in it acts on who reads it", () => {
    const lines: string[] = [];
    const log = channelLog(
      channel((line) => {
        lines.push(line);
      }),
    );
    log.info("started");
    log.error("a \u001b[31mred\u202e thing");
    assert.equal(lines[0], "info started");
    assert.match(lines[1] ?? "", /^error a /);
    assert.doesNotMatch(lines[1] ?? "", /[\u001b\u202e]/);
  });

  it("stops nobody once its channel is closed, as it is while a window ends", () => {
    const log = channelLog(
      channel(() => {
        throw new Error("Channel has been closed");
      }),
    );
    for (const level of ["trace", "debug", "info", "warn", "error"] as const) {
      assert.doesNotThrow(() => {
        log[level]("the server has ended");
      });
    }
  });
});
