// What was used, as far as it is known.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { UsageSum } from "@callboard/protocol";

import { cells, usageLine, usageLines } from "../../src/model/usage";
import { session } from "./wire";

const sum = (fields: Partial<UsageSum> = {}): UsageSum => ({
  usage: { requests: 1 },
  runs: 1,
  ...fields,
});

describe("usage in a line", () => {
  it("is told as far as it is known", () => {
    assert.equal(usageLine(undefined), "");
    assert.equal(usageLine({ requests: 1 }), "");
    assert.equal(usageLine({ inputTokens: 1200 }), "1.2k in, ? out");
    assert.equal(
      usageLine({ inputTokens: 900, outputTokens: 12, cost: 0.0125 }),
      "900 in, 12 out · $0.0125",
    );
    assert.equal(usageLine({ cost: 0.5, currency: "EUR" }), "0.5 EUR");
    assert.equal(usageLine({ cost: 0.123456 }), "$0.1235");
  });
});

describe("usage as a table", () => {
  it("shows what is not known as ?, never as 0", () => {
    const total = sum({ unknownTokens: 1, unknownCost: 1 });
    assert.deepEqual(
      usageLines({
        sessionId: "ses_1",
        total,
        models: [{ model: "a/b", total: sum() }],
        tree: total,
        sessions: [{ sessionId: "ses_1", total: sum() }],
        runs: [],
      }),
      [
        "              runs  requests  tokens in  cached  out  cost",
        "a/b              1         1          ?       ?    ?     ?",
        "this session     1         1          ?       ?    ?     ?",
        "Tokens: unknown or incomplete for 1 run.",
        "Cost: unknown or incomplete for 1 run.",
      ],
    );
  });

  it("shows each agent, and what all used", () => {
    const own = sum({
      usage: { requests: 2, inputTokens: 1500, outputTokens: 0, cost: 0.02, currency: "USD" },
    });
    const child = sum({ usage: { requests: 1, inputTokens: 10, outputTokens: 5 } });
    const tree = sum({
      runs: 2,
      usage: { requests: 3, inputTokens: 1510, outputTokens: 5 },
      costs: [
        { amount: 0.02, currency: "USD" },
        { amount: 1, currency: "EUR" },
      ],
    });
    assert.deepEqual(
      usageLines(
        {
          sessionId: "ses_1",
          total: own,
          models: [{ total: own }],
          tree,
          sessions: [
            { sessionId: "ses_1", total: own },
            { sessionId: "ses_2", parentId: "ses_1", title: "tests\n", total: child },
          ],
          runs: [],
          moreSessions: 3,
        },
        session({ usage: { contextTokens: 42_000 } }),
      ),
      [
        "                          runs  requests  tokens in  cached  out              cost",
        "(model not known)            1         2       1.5k       ?    0             $0.02",
        "this session                 1         2       1.5k       ?    0             $0.02",
        "  tests                      1         1         10       ?    5                 ?",
        "with all agents below it     2         3       1.5k       ?    5  $0.02 + 1.00 EUR",
        "3 more agents are counted, but not named.",
        "The last request took 42.0k tokens of context.",
      ],
    );
  });

  it("stands in columns whatever the names are made of", () => {
    assert.equal(cells("aé全🙂e\u0301"), 1 + 1 + 2 + 2 + 1);
  });
});
