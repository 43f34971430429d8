// What waits for an answer, whoever told of it and in whatever order.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { Approval } from "@callboard/protocol";

import {
  addApproval,
  approvalsOf,
  forgetApprovals,
  getApproval,
  newApprovals,
  nextApproval,
  optionOf,
  removeApproval,
  replaceApprovals,
  type Approvals,
} from "../../src/model/approvals";
import { approval } from "./wire";

const ids = (list: readonly Approval[]): string[] => list.map((each) => each.approvalId);
const waiting = (state: Approvals): string[] => ids(state.pending);

describe("approvals", () => {
  it("stand in the order in which they were asked", () => {
    const state = newApprovals();
    for (const [id, at] of [
      ["apr_2", "02"],
      ["apr_9", "01"],
      ["apr_1", "02"],
    ] as const) {
      assert.equal(
        addApproval(state, approval(id, { createdAt: `2030-01-01T10:00:${at}.000Z` })),
        true,
      );
    }
    assert.deepEqual(waiting(state), ["apr_9", "apr_1", "apr_2"]);
  });

  it("are there once, by whatever road they come", () => {
    const state = newApprovals();
    assert.equal(addApproval(state, approval("apr_1")), true);
    assert.equal(addApproval(state, approval("apr_1")), false);
    assert.deepEqual(waiting(state), ["apr_1"]);
  });

  it("that have ended do not come back with an older listing", () => {
    const state = newApprovals();
    addApproval(state, approval("apr_1"));
    assert.equal(removeApproval(state, "apr_1")?.approvalId, "apr_1");
    assert.equal(removeApproval(state, "apr_1"), undefined);
    assert.equal(addApproval(state, approval("apr_1")), false);
    replaceApprovals(state, [approval("apr_1"), approval("apr_2")]);
    assert.deepEqual(waiting(state), ["apr_2"]);
  });

  it("that ended before they were heard of do not come at all", () => {
    const state = newApprovals();
    removeApproval(state, "apr_1");
    assert.equal(addApproval(state, approval("apr_1")), false);
  });

  it("that do not wait are not taken in", () => {
    const state = newApprovals();
    const { state: _, ...stateless } = approval("apr_3");
    assert.equal(addApproval(state, approval("apr_1", { state: "resolved" })), false);
    assert.equal(addApproval(state, approval("apr_2", { state: "expired" })), false);
    assert.equal(addApproval(state, stateless), true);
    assert.deepEqual(waiting(state), ["apr_3"]);
  });

  it("that a listing does not name are gone", () => {
    const state = newApprovals();
    addApproval(state, approval("apr_1"));
    replaceApprovals(state, [approval("apr_2")]);
    assert.deepEqual(waiting(state), ["apr_2"]);
    assert.equal(getApproval(state, "apr_1"), undefined);
    assert.equal(getApproval(state, "apr_2")?.approvalId, "apr_2");
  });

  it("of a session go with it, and those of its agents", () => {
    const state = newApprovals();
    addApproval(state, approval("apr_1"));
    addApproval(state, approval("apr_2", { sessionId: "ses_2" }));
    addApproval(state, approval("apr_3", { sessionId: "ses_3", rootId: "ses_3" }));
    assert.deepEqual(ids(approvalsOf(state, "ses_1")), ["apr_1", "apr_2"]);
    assert.deepEqual(ids(approvalsOf(state, "ses_2")), ["apr_2"]);
    assert.deepEqual(ids(forgetApprovals(state, "ses_1")), ["apr_1", "apr_2"]);
    assert.deepEqual(waiting(state), ["apr_3"]);
  });

  it("are gone through in turn", () => {
    const state = newApprovals();
    assert.equal(nextApproval(state), undefined);
    for (const id of ["apr_1", "apr_2", "apr_3"]) {
      addApproval(state, approval(id));
    }
    let at: string | undefined;
    const order = [1, 2, 3, 4].map(() => (at = nextApproval(state, at)?.approvalId));
    assert.deepEqual(order, ["apr_1", "apr_2", "apr_3", "apr_1"]);
    assert.equal(nextApproval(state, "apr_gone")?.approvalId, "apr_1");
  });

  it("offer their options by number", () => {
    const offered = approval("apr_1", {
      options: [
        { optionId: "a", kind: "allow_once", name: "" },
        { optionId: "b", kind: "reject_once", name: "" },
        { optionId: "c", kind: "allow_always", name: "" },
      ],
    });
    const got = [1, 2, 3, 4, 5, 6].map((number) => optionOf(offered, number)?.optionId ?? "none");
    assert.deepEqual(got, ["a", "none", "c", "b", "b", "none"]);
  });
});
