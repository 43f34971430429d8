// What is written down holds no secret, and nothing that acts on whoever reads it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LogOutputChannel } from "vscode";
import { channelLog } from "../../src/log";
import { CallError, errorFrom, explain, kindOf } from "../../src/server/errors";
import { isSecretName, masked } from "../../src/server/secrets";
import { abridged } from "../../src/server/trace";

describe("a secret", () => {
  for (const [text, shown] of [
    ["OPENAI_API_KEY=hunter2!", "OPENAI_API_KEY=•••"],
    ["export ANTHROPIC_API_KEY='hunter2'", "export ANTHROPIC_API_KEY='•••'"],
    ['{"api_key": "hunter2", "n": 1}', '{"api_key": "•••", "n": 1}'],
    ['"{\\"apiKey\\": \\"hunter2\\"}"', '"{\\"apiKey\\": \\"•••\\"}"'],
    ["password: hunter2", "password: •••"],
    ["Authorization: Bearer abcdefgh.ijkl", "Authorization: Bearer •••"],
    ["the key sk-abcdefghijklmnopqrstuv is wrong", "the key ••• is wrong"],
    ["ghp_abcdefghijklmnop and AKIAABCDEFGHIJKLMNOP", "••• and •••"],
    ["https://ann:hunter2@example.org/x", "https://ann:•••@example.org/x"],
    ["-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----.", "•••."],
    ["-----BEGIN PRIVATE KEY-----\nabc", "•••"],
  ] as const) {
    it(`is put out of sight: ${JSON.stringify(text)}`, () => {
      assert.equal(masked(text), shown);
    });
  }

  for (const text of [
    "idempotencyKey: vscode_1.7",
    '{"inputTokens":1200,"outputTokens":7}',
    "max_token=100",
    "ModuleNotFoundError: No module named callboard",
    "https://example.org:8080/a@b",
    "risk-assessment-of-everything",
  ]) {
    it(`is not taken to be in: ${text}`, () => {
      assert.equal(masked(text), text);
    });
  }

  it("is known by its name", () => {
    for (const name of [
      "apiKey",
      "api_key",
      "OPENAI_API_KEY",
      "token",
      "accessToken",
      "password",
    ]) {
      assert.ok(isSecretName(name), name);
    }
    for (const name of ["idempotencyKey", "tokens", "key", "title", "cursor", "author"]) {
      assert.ok(!isSecretName(name), name);
    }
  });
});

describe("a trace", () => {
  it("holds of a value what can be read", () => {
    const deep: Record<string, unknown> = {};
    deep["self"] = deep;
    const shown = abridged({ text: "x".repeat(1000), token: "t", tokens: 7, list: [null], deep });
    const said = JSON.stringify(shown);
    assert.ok(said.includes('"token":"•••","tokens":7,"list":[null]'), said);
    assert.ok(said.includes("(1000 characters)") && said.length < 600, said);
  });
});

describe("the log", () => {
  const lines: string[] = [];
  const add = (text: string): void => {
    lines.push(text);
  };
  const channel = { trace: add, debug: add, info: add, warn: add, error: add };
  const log = channelLog(channel as unknown as LogOutputChannel);

  it("holds no secrets, no control characters, and no text without an end", () => {
    lines.length = 0;
    for (const level of ["trace", "debug", "info", "warn", "error"] as const) {
      log[level]("\x1b[31mpassword=hunter2\n\u202enext");
    }
    log.info("x".repeat(1_000_000));
    assert.deepEqual(
      lines.slice(0, 5),
      Array.from({ length: 5 }, () => "<1B>[31mpassword=•••\n<U+202E>next"),
    );
    assert.ok((lines[5]?.length ?? 0) < 30_000);
  });
});

describe("an error", () => {
  it("is told in the server's words, and with the way out where those have none", () => {
    const gone = new CallError(-31101, " there is no session x ", { kind: "sessionNotFound" });
    assert.match(explain(gone), /^there is no session x\nIt was deleted/);
    const way = "Begin another one with “Callboard: New Session”.";
    assert.equal(explain(new CallError(-31102, way, { kind: "sessionClosed" })), way);
    assert.equal(explain(new CallError(0, "  ")), "the server gave no reason");
    assert.equal(explain(new CallError(0, "no", { kind: "constructor" })), "no");
    assert.equal(explain(new Error("of ours")), "of ours");
    assert.equal(explain("words"), "words");
    assert.equal(explain(undefined), "");
  });

  it("is read whatever it is", () => {
    assert.equal(kindOf(errorFrom({ code: 1, data: { kind: "nameInUse" } })), "nameInUse");
    for (const value of [null, 7, "x", [], {}, { code: "x", message: {}, data: 7 }]) {
      const fault = errorFrom(value);
      assert.equal(fault.code, 0);
      assert.equal(fault.kind, undefined);
      assert.deepEqual(fault.data, {});
    }
    assert.equal(kindOf(new Error("x")), undefined);
  });
});
