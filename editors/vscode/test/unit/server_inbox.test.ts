// What waits to be handled: bounded, in order, and told when it is empty.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { frame } from "../../src/server/framing";
import { Inbox } from "../../src/server/inbox";
import { Lines } from "./logs";

function inbox(room?: { messages: number; bytes: number }): {
  box: Inbox;
  told: string[];
  empty: () => Promise<void>;
} {
  const told: string[] = [];
  const box = new Inbox(
    {
      hold: (held) => {
        told.push(held ? "hold" : "go on");
      },
      refused: (garbage) => {
        told.push(`refused ${garbage}`);
      },
      received: () => undefined,
    },
    new Lines(),
    room,
  );
  box.listen((message) => {
    told.push((message as { method?: string }).method ?? "?");
  });
  const empty = (): Promise<void> =>
    new Promise((resolve) => {
      box.whenEmpty(resolve);
    });
  return { box, told, empty };
}

const named = (method: string, text = ""): Buffer =>
  frame(JSON.stringify({ method, params: { text } }));

describe("an inbox", () => {
  it("reads no more when many wait, and reads on when half of them are handled", async () => {
    const { box, told, empty } = inbox({ messages: 4, bytes: 1e9 });
    for (const method of ["1", "2", "3", "4"]) {
      box.feed(named(method));
    }
    assert.deepEqual(told, []);
    box.feed(named("5"));
    assert.deepEqual(told, ["hold"]);
    await empty();
    assert.deepEqual(told, ["hold", "1", "2", "go on", "3", "4", "5"]);
  });

  it("reads no more when much waits", async () => {
    const { box, told, empty } = inbox({ messages: 100, bytes: 1000 });
    box.feed(named("1", "x".repeat(2000)));
    assert.deepEqual(told, ["hold"]);
    await empty();
    assert.deepEqual(told, ["hold", "go on", "1"]);
  });

  it("tells what is no message in its turn, and hears nothing after it", async () => {
    const { box, told, empty } = inbox();
    box.feed(Buffer.concat([named("1"), frame("nonsense"), named("2")]));
    box.feed(named("3"));
    await empty();
    box.feed(named("4"));
    await empty();
    assert.deepEqual(told, ["1", "refused nonsense"]);
  });

  it("tells what is no frame in its turn, and hears nothing after it", async () => {
    const { box, told, empty } = inbox();
    box.feed(Buffer.concat([named("1"), Buffer.from("Traceback (most\n")]));
    box.feed(named("2"));
    await empty();
    assert.deepEqual(told, ["1", "refused Traceback (most\n"]);
  });

  it("hands on so much in one go, however much comes in one piece", async () => {
    const { box, told, empty } = inbox();
    box.feed(Buffer.concat(Array.from({ length: 500 }, (_, i) => named(String(i)))));
    let rounds = 0;
    let most = 0;
    let before = 0;
    let over = false;
    const look = (): void => {
      const handled = told.filter((each) => /^\d+$/.test(each)).length;
      most = Math.max(most, handled - before);
      before = handled;
      rounds += 1;
      if (!over) {
        setImmediate(look);
      }
    };
    setImmediate(look);
    await empty();
    over = true;
    assert.deepEqual(
      told.filter((each) => /^\d+$/.test(each)),
      Array.from({ length: 500 }, (_, i) => String(i)),
    );
    assert.ok(most <= 2 && rounds >= 250, `${most} in a round`);
  });
});
