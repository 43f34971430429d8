// What is on its way to the server, and what was said before.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";

import {
  addOutgoing,
  back,
  forward,
  newHistory,
  newOutbox,
  remember,
  settleOutgoing,
  type History,
} from "../../src/model/queue";

describe("the outbox", () => {
  it("keeps what is said until it is settled, once", () => {
    const box = newOutbox();
    addOutgoing(box, { key: "k.1", text: "one", delivery: "auto" });
    addOutgoing(box, { key: "k.2", text: "two", delivery: "steer" });
    assert.equal(settleOutgoing(box, "k.1")?.text, "one");
    assert.equal(settleOutgoing(box, "k.1"), undefined);
    assert.equal(settleOutgoing(box, "k.9"), undefined);
    assert.deepEqual(box.sending, [{ key: "k.2", text: "two", delivery: "steer" }]);
  });
});

describe("the history", () => {
  let history: History;

  beforeEach(() => {
    history = newHistory();
    for (const text of ["one", "two", "three"]) {
      remember(history, text);
    }
  });

  it("is gone through back and forth, and gives back what stood there", () => {
    assert.equal(back(history, "draft"), "three");
    assert.equal(back(history, "three"), "two");
    assert.equal(back(history, "two"), "one");
    assert.equal(back(history, "one"), undefined);
    assert.equal(forward(history), "two");
    assert.equal(forward(history), "three");
    assert.equal(forward(history), "draft");
    assert.equal(forward(history), undefined);
  });

  it("gives back nothing where nothing stood", () => {
    back(history, "");
    assert.equal(forward(history), "");
  });

  it("begins at the newest again after something was said", () => {
    back(history, "");
    back(history, "");
    remember(history, "four");
    assert.equal(back(history, ""), "four");
  });

  it("does not keep what is blank, or what was just said", () => {
    remember(history, " \n");
    remember(history, "three");
    assert.deepEqual(history.entries, ["one", "two", "three"]);
  });

  it("forgets the oldest beyond a hundred", () => {
    for (let i = 1; i <= 150; i++) {
      remember(history, `said ${i}`);
    }
    assert.equal(history.entries.length, 100);
    assert.equal(history.entries[0], "said 51");
  });

  it("is empty at first", () => {
    const empty = newHistory();
    assert.equal(back(empty, "draft"), undefined);
    assert.equal(forward(empty), undefined);
  });
});
