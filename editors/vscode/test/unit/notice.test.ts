import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { approvalNotice } from "../../src/model/notice";
import { statusLine, type Standing } from "../../src/model/statusLine";
import { serverState, whyNotStarted, type ServerLook } from "../../src/model/serverState";
import { approval } from "./wire";

function command(text: string): ReturnType<typeof approvalNotice> {
  const asked = approval("apr", { subject: { type: "command", command: text, cwd: "/w" } });
  return approvalNotice(asked, "“A session”", "/w");
}

describe("a notice of an approval", () => {
  it("shows the whole command, which then may be allowed from there", () => {
    assert.deepEqual(command("make test"), {
      text: "“A session” wants to run: make test",
      whole: true,
    });
  });

  for (const [name, text] of [
    ["is too long", `echo ${"x".repeat(300)} && rm -rf build`],
    ["has several lines", "make\nrm -rf build"],
    ["hides something far to the right", `make${" ".repeat(100)}&& rm -rf build`],
    ["has marks that turn the direction", "make \u202e tset"],
    ["has control characters", "make \u001b[2K"],
    ["would be a link", "echo [all](command:callboard.approveOnce)"],
  ] as const) {
    it(`allows nothing there that ${name}`, () => {
      const notice = command(text);
      assert.equal(notice.whole, false);
      assert.doesNotMatch(notice.text, /[\n\u202e\u001b]|\]\(/);
      assert.ok(notice.text.length < 320);
    });
  }

  it("says where a command is to run, when that is not where its session works", () => {
    const asked = approval("apr", { subject: { type: "command", command: "ls", cwd: "/other" } });
    assert.equal(approvalNotice(asked, "it", "/w").text, "it wants to run: ls (in /other)");
  });

  it("names the files that would be changed, and allows nothing without the diff", () => {
    const change = (path: string): object => ({
      path,
      operation: "modify",
      diff: "",
      added: 1,
      removed: 1,
    });
    const changes = ["a", "b", "c", "d", "e"].map(change) as never;
    const asked = approval("apr", { subject: { type: "fileChange", changes } });
    assert.deepEqual(approvalNotice(asked, "it", "/w"), {
      text: "it wants to change: a, b, c, 2 other files",
      whole: false,
    });
  });

  it("says which agent asks", () => {
    const path = [
      { sessionId: "ses_1", name: "lead" },
      { sessionId: "ses_2", name: "scout" },
    ] as never;
    const asked = approval("apr", { path, sessionId: "ses_2" });
    assert.match(approvalNotice(asked, "“S”", "/w").text, /^scout in “S” wants to run/);
  });

  it("leaves a question to whoever reads it", () => {
    const subject = { type: "form", message: "Which?", schema: {} } as const;
    const asked = approval("apr", { kind: "question", subject, title: "Which one?" });
    assert.deepEqual(approvalNotice(asked, "it", "/w"), {
      text: "it asks: Which one?",
      whole: false,
    });
  });
});

describe("the status bar", () => {
  const line = (fields: Partial<Standing>): [string, string] => {
    const told = statusLine({ server: "ready", running: 0, approvals: 0, ...fields });
    return [told.text, told.urgency];
  };

  it("says what is most urgent", () => {
    assert.deepEqual(line({}), ["$(check) Callboard", "none"]);
    assert.deepEqual(line({ running: 2 }), ["$(sync~spin) 2 running", "none"]);
    assert.deepEqual(line({ approvals: 1 }), ["$(bell-dot) 1 approval", "warning"]);
    assert.deepEqual(line({ approvals: 2, running: 1 }), [
      "$(bell-dot) 2 approvals, 1 running",
      "warning",
    ]);
  });

  it("says what the server is doing, whatever was known before", () => {
    const before = { running: 3, approvals: 3 };
    assert.deepEqual(line({ ...before, server: "notFound" }), [
      "$(error) Callboard: not found",
      "error",
    ]);
    assert.deepEqual(line({ ...before, server: "failed" }), [
      "$(error) Callboard: no server",
      "error",
    ]);
    assert.deepEqual(line({ ...before, server: "silent" }), [
      "$(error) Callboard: no answer",
      "error",
    ]);
    assert.deepEqual(line({ server: "waiting" }), ["$(sync~spin) Callboard: reconnecting", "none"]);
    assert.deepEqual(line({ server: "untrusted" }), ["$(shield) Callboard", "none"]);
    assert.deepEqual(line({ server: "stopped" }), ["$(comment-discussion) Callboard", "none"]);
  });

  it("says the same without icons to whoever hears it", () => {
    for (const server of ["ready", "failed", "notFound", "silent", "waiting"] as const) {
      const { about } = statusLine({ server, running: 1, approvals: 1, message: "it is gone" });
      assert.match(about, /^Callboard: \w/);
      assert.doesNotMatch(about, /\$\(/);
    }
  });
});

describe("the state of the server", () => {
  const state = (
    fields: Partial<Omit<ServerLook, "server">> & { server?: Partial<ServerLook["server"]> },
  ): string =>
    serverState({
      trusted: true,
      greeted: false,
      ...fields,
      server: { state: "ready", silent: false, ...fields.server },
    });

  it("tells one that was never found from one that could not be kept running", () => {
    assert.equal(state({ server: { state: "failed" } }), "notFound");
    assert.equal(state({ server: { state: "failed", found: { guess: true } } }), "notFound");
    assert.equal(state({ server: { state: "failed", found: {} } }), "failed");
    assert.equal(state({ greeted: true, server: { state: "failed" } }), "failed");
  });

  it("is silent only while there is one that could speak", () => {
    assert.equal(state({ server: { silent: true } }), "silent");
    assert.equal(state({ server: { silent: true, state: "waiting" } }), "waiting");
  });

  it("is nothing else where none may run", () => {
    assert.equal(state({ trusted: false }), "untrusted");
  });
});

describe("why a server does not start", () => {
  const failure = { message: "it ended with code 2", lines: ["usage", "no such\noption"] };

  it("is told in a line, with what it said last", () => {
    assert.equal(
      whyNotStarted({ ...failure, starting: true }),
      "The server does not start: it ended with code 2: no such option",
    );
    assert.equal(
      whyNotStarted({ ...failure, lines: [], starting: true }),
      "The server does not start: it ended with code 2",
    );
  });

  it("is not told of one that served", () => {
    assert.equal(whyNotStarted({ ...failure, starting: false }), undefined);
    assert.equal(whyNotStarted(undefined), undefined);
  });
});
