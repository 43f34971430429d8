import type { Event, FileChange } from "@callboard/protocol";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { before, proposed } from "../../src/model/before";
import { Changes, fileChanges, type ChangedFile } from "../../src/model/changes";
import { contentOf, textOf, type Text } from "../../src/model/patch";
import {
  MAX_REJECTED,
  mergeReview,
  newReview,
  noteVerdict,
  readReview,
  writeReview,
  type Review,
  type Verdict,
} from "../../src/model/review";
import { diffOf, randomly } from "./texts";

let position = 0;

function event(type: string, sessionId: string, seq: number, data: unknown): Event {
  position += 1;
  const actor = { kind: "agent" };
  return { type, sessionId, seq, pos: position, eventId: "", at: "", actor, data } as Event;
}

function result(sessionId: string, seq: number, changes: unknown): Event {
  return event("tool_result", sessionId, seq, { callId: `call${seq}`, status: "ok", changes });
}

function change(path: string, from: string | undefined, to: string | undefined): FileChange {
  const operation = from === undefined ? "create" : to === undefined ? "delete" : "modify";
  const diff = diffOf(from ?? "", to ?? "");
  const lines = diff.split("\n").slice(4);
  return {
    path,
    operation,
    diff,
    added: lines.filter((line) => line.startsWith("+")).length,
    removed: lines.filter((line) => line.startsWith("-")).length,
  };
}

function of(...events: Event[]): Changes {
  const changes = new Changes();
  for (const each of events) {
    changes.add(each);
  }
  return changes;
}

function file(changes: Changes, path: string): ChangedFile {
  const found = changes.files().find((each) => each.path === path);
  assert.ok(found, `no ${path}`);
  return found;
}

/** Settles them, and keeps it. */
function settle(changes: Changes, files: ChangedFile[], said: Verdict): Map<string, Review> {
  const reviews = changes.settle(files, said);
  for (const [id, review] of reviews) {
    changes.settled(id, review);
  }
  return reviews;
}

function content(text: Text | undefined): string | undefined {
  return text && contentOf(text);
}

describe("the files that a session changed", () => {
  it("are told by path, with all that was added and removed", () => {
    const files = of(
      result("s", 3, [change("/b", "x\n", "y\n")]),
      result("s", 5, [change("/a", undefined, "1\n2\n"), change("/b", "y\n", "y\nz\n")]),
    ).files();
    const told = files.map((f) => [
      f.path,
      f.added,
      f.removed,
      f.operation,
      f.state,
      f.chain.length,
    ]);
    assert.deepEqual(told, [
      ["/a", 2, 0, "create", "new", 1],
      ["/b", 2, 1, "modify", "new", 2],
    ]);
  });

  it("are the same whatever order events come in, and however often", () => {
    const one = result("s", 3, [change("/b", "x\n", "y\n")]);
    const two = result("s", 5, [change("/b", "y\n", "z\n")]);
    const three = result("t", 2, [change("/b", "z\n", "w\n")]);
    const forward = file(of(one, two, three), "/b").chain;
    const backward = file(of(three, two, one, two, three), "/b").chain;
    assert.deepEqual(backward, forward);
    assert.equal(backward.length, 3);
  });

  it("are none where calls changed nothing", () => {
    const reading = result("s", 4, undefined);
    assert.deepEqual(of(reading, event("message", "s", 5, {})).files(), []);
  });

  for (const [operations, come] of [
    [["create", "modify"], "create"],
    [["create", "delete"], "nothing"],
    [["create", "delete", "create"], "create"],
    [["modify", "modify"], "modify"],
    [["modify", "delete"], "delete"],
    [["delete", "create"], "modify"],
    [["delete", "create", "delete"], "delete"],
  ] as const) {
    it(`come to ${come} after ${operations.join(", ")}`, () => {
      const events = operations.map((operation, i) =>
        result("s", i + 1, [{ ...change("/f", "a\n", "b\n"), operation }]),
      );
      assert.equal(file(of(...events), "/f").operation, come);
    });
  }

  it("go along when they are moved", () => {
    const moved = { ...change("/new", "", ""), oldPath: "/old", operation: "move", diff: "" };
    const files = of(
      result("s", 1, [change("/old", "a\n", "b\n")]),
      result("s", 2, [moved]),
    ).files();
    assert.deepEqual(
      files.map((f) => [f.path, f.oldPath, f.operation, f.chain.length]),
      [["/new", "/old", "move", 2]],
    );
  });

  it("say where their diffs do not hold all", () => {
    const cut = { ...change("/f", "a\n", "b\n"), truncated: true };
    assert.match(file(of(result("s", 1, [cut])), "/f").partial ?? "", /cut/);
    const none = { path: "/g", operation: "modify", diff: "", added: 0, removed: 0 };
    assert.match(file(of(result("s", 2, [none])), "/g").partial ?? "", /no diff/);
    assert.equal(file(of(result("s", 3, [change("/h", undefined, "")])), "/h").partial, undefined);
  });

  it("of a fork are those that it changed itself", () => {
    const changes = of(result("fork", 3, [change("/f", "a\n", "b\n")]));
    changes.add(event("session_forked", "fork", 9, {}));
    assert.deepEqual(changes.files(), []);
    changes.add(result("fork", 12, [change("/f", "b\n", "c\n")]));
    assert.equal(file(changes, "/f").chain.length, 1);
  });

  it("are what can be read of them, whatever a peer sends", () => {
    for (const bad of [null, 7, "x", {}, [null, 3, [], { path: 4 }, { path: "" }]]) {
      assert.deepEqual(fileChanges(bad), []);
      assert.deepEqual(of(result("s", 1, bad)).files(), []);
    }
    assert.deepEqual(of(event("tool_result", "s", 1, null)).files(), []);
    const [odd] = of(result("s", 2, [{ path: "__proto__", added: "9", diff: 3 }])).files();
    assert.deepEqual([odd?.path, odd?.added, odd?.operation], ["__proto__", 0, "modify"]);
  });
});

describe("what was said of them", () => {
  const events = (): Event[] => [
    result("s", 3, [change("/a", "x\n", "y\n")]),
    result("s", 5, [change("/b", undefined, "one\n")]),
    result("t", 4, [change("/a", "y\n", "z\n")]),
  ];

  it("is kept by session, and survives", () => {
    const all = events();
    const changes = of(...all);
    const reviews = settle(changes, [file(changes, "/a")], "rejected");
    assert.deepEqual([...reviews.keys()].sort(), ["s", "t"]);
    assert.equal(file(changes, "/a").state, "rejected");
    assert.equal(file(changes, "/b").state, "new");

    const later = of(...all);
    for (const [id, review] of reviews) {
      const kept = JSON.parse(JSON.stringify(writeReview({ mine: [1] }, id, review))) as {
        mine: unknown;
      };
      assert.deepEqual(kept.mine, [1]);
      later.reviewed(id, kept);
    }
    assert.equal(file(later, "/a").state, "rejected");
    assert.equal(file(later, "/b").state, "new");
  });

  it("is about what was seen, and not about what came meanwhile", () => {
    const changes = of(...events());
    const seen = file(changes, "/a");
    changes.add(result("s", 8, [change("/a", "z\n", "w\n")]));
    settle(changes, [seen], "accepted");
    const now = file(changes, "/a");
    assert.deepEqual([now.state, now.chain.map((step) => step.seq)], ["new", [8]]);
  });

  it("is not unsaid by what another window knew before", () => {
    const changes = of(...events());
    const old = writeReview(undefined, "s", newReview());
    settle(changes, [file(changes, "/a")], "accepted");
    changes.reviewed("s", old);
    assert.equal(file(changes, "/a").state, "accepted");
  });

  it("is what was said of the later change, in whatever order it comes", () => {
    const review = newReview();
    noteVerdict(review, "/a", 5, "accepted");
    noteVerdict(review, "/a", 3, "rejected");
    assert.deepEqual(review.files.get("/a"), { through: 5, verdict: "accepted" });
    const other = newReview();
    noteVerdict(other, "/a", 7, "rejected");
    mergeReview(review, other);
    assert.deepEqual(review.files.get("/a"), { through: 7, verdict: "rejected" });
  });

  it("does not hold for a fork, whose events have other numbers", () => {
    const changes = of(...events());
    const review = settle(changes, changes.files(), "accepted").get("s");
    assert.ok(review);
    const fork = of(result("fork", 2, [change("/a", "x\n", "y\n")]));
    fork.reviewed("fork", writeReview(undefined, "s", review));
    assert.equal(file(fork, "/a").state, "new");
  });

  it("is a single number once all is accepted", () => {
    const changes = of(...events());
    const review = settle(changes, changes.files(), "accepted").get("s");
    assert.deepEqual(writeReview(undefined, "s", review ?? newReview()), {
      "callboard.review": { sessionId: "s", through: 5, files: {} },
    });
    assert.equal(file(changes, "/b").state, "accepted");
  });

  it("stays small, and forgets nothing that waits", () => {
    const changes = new Changes();
    for (let seq = 1; seq <= 500; seq++) {
      changes.add(result("s", seq, [change(`/file${seq}`, "a\n", "b\n")]));
    }
    const first = file(changes, "/file1");
    const others = changes.files().filter((each) => each.path !== "/file1");
    settle(changes, others, "rejected");
    assert.equal(file(changes, "/file1").state, "new");
    assert.equal(file(changes, "/file2").state, "rejected");
    const review = settle(changes, [first], "accepted").get("s");
    assert.ok(review && review.files.size <= MAX_REJECTED);
    assert.equal(file(changes, "/file500").state, "rejected");
    assert.ok(changes.files().every((each) => each.state !== "new"));
  });

  const strange: Record<string, unknown> = {
    nothing: {},
    "something else": { "callboard.review": "yes" },
    "no numbers": {
      "callboard.review": { sessionId: "s", through: "x", files: { "/a": { through: {} } } },
    },
    "a list": { "callboard.review": { sessionId: "s", through: -3, files: [1, { through: 9 }] } },
    "what is no object": 7,
  };
  for (const [name, metadata] of Object.entries(strange)) {
    it(`is nothing where the metadata hold ${name}`, () => {
      assert.deepEqual(readReview(metadata, "s"), newReview());
    });
  }
});

describe("the text before", () => {
  it("is that before all of a chain, or before what is new of it", () => {
    const [first, second, third] = ["a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n"] as const;
    const changes = of(
      result("s", 1, [change("/f", first, second)]),
      result("s", 2, [change("/f", second, third)]),
    );
    const all = file(changes, "/f");
    const back = before(textOf(third), all.chain);
    assert.deepEqual([content(back.text), back.taken, back.failed], [first, 2, []]);
    settle(changes, [{ ...all, chain: all.chain.slice(0, 1) }], "accepted");
    assert.equal(content(before(textOf(third), file(changes, "/f").chain).text), second);
  });

  it("is none for a file that was made", () => {
    const changes = of(
      result("s", 1, [change("/f", undefined, "a\n")]),
      result("s", 2, [change("/f", "a\n", "b\n")]),
    );
    const back = before(["b\n"], file(changes, "/f").chain);
    assert.deepEqual([back.text, back.failed], [undefined, []]);
  });

  it("is none for one that was made empty", () => {
    const changes = of(result("s", 1, [change("/f", undefined, "")]));
    const back = before([], file(changes, "/f").chain);
    assert.deepEqual(back, { text: undefined, failed: [], taken: 1 });
  });

  for (const now of ["a\nb\n", "b\n", ""]) {
    it(`says so where a file that was made is another now: ${JSON.stringify(now)}`, () => {
      const changes = of(result("s", 1, [change("/f", undefined, "a\n")]));
      assert.equal(before(textOf(now), file(changes, "/f").chain).failed.length, 1);
    });
  }

  it("is all of a file that was deleted", () => {
    const { chain } = file(of(result("s", 1, [change("/f", "a\nb", undefined)])), "/f");
    const back = before(undefined, chain);
    assert.deepEqual([content(back.text), back.failed], ["a\nb", []]);
    assert.equal(before(["new\n"], chain).failed[0]?.why, "the file is there again");
  });

  it("leaves what it cannot take back, and names it", () => {
    const changes = of(
      result("s", 1, [change("/f", "1\n2\n3\n", "1\n2\n3\n4\n")]),
      result("s", 2, [{ ...change("/f", "a\n", "b\n"), truncated: true }]),
      result("s", 3, [
        { path: "/f", operation: "modify", diff: "no diff at all", added: 1, removed: 0 },
      ]),
    );
    const back = before(textOf("1\n2\n3\n4\n"), file(changes, "/f").chain);
    assert.equal(content(back.text), "1\n2\n3\n");
    assert.deepEqual(
      back.failed.map((each) => each.why),
      ["its diff is empty", "its diff was cut"],
    );
  });

  it("is found again through any number of random changes", () => {
    const random = randomly(7);
    for (let round = 0; round < 60; round++) {
      const lines = Array.from({ length: random(50) }, (_, i) => `${i} ${random(9)}`);
      const whole = (): string =>
        lines.join("\n") + (random(3) > 0 && lines.length > 0 ? "\n" : "");
      const texts = [whole()];
      const events: Event[] = [];
      for (let seq = 1; seq <= 1 + random(6); seq++) {
        for (let edits = 1 + random(4); edits > 0; edits--) {
          const at = random(lines.length + 1);
          lines.splice(at, random(2), ...(random(2) === 0 ? [] : [`new ${random(1000)}`]));
        }
        texts.push(whole());
        events.push(result("s", seq, [change("/f", texts.at(-2), texts.at(-1))]));
      }
      if (events.length > 0) {
        const back = before(textOf(texts.at(-1) ?? ""), file(of(...events), "/f").chain);
        assert.deepEqual([round, content(back.text), back.failed], [round, texts[0], []]);
      }
    }
  });
});

describe("a change that waits", () => {
  it("is shown as what the file would be", () => {
    assert.deepEqual(proposed(["a\n"], change("/f", "a\n", "b\n"), "it"), { text: ["b\n"] });
    assert.deepEqual(proposed(undefined, change("/f", undefined, "b\n"), "it"), { text: ["b\n"] });
    assert.deepEqual(proposed(["a\n"], change("/f", "a\n", undefined), "it"), { text: undefined });
  });

  it("says why it cannot be shown", () => {
    const modify = change("/f", "a\n", "b\n");
    const why = (text: Text | undefined, what: FileChange): string => {
      const told = proposed(text, what, "the file as it is now");
      assert.ok("why" in told);
      return told.why;
    };
    assert.equal(why(["c\n"], modify), "hunk 1 (line 1) does not fit the file as it is now");
    assert.match(why(["a\n"], { ...modify, truncated: true }), /cut/);
    assert.match(why(["a\n"], change("/f", undefined, "b\n")), /there already/);
    assert.match(why(["a\n"], { ...modify, diff: "@@ -1 +1 @@\n-a" }), /damaged/);
  });
});
