"""How calls, diffs and ends are told; pure."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.acp.agent import tools
from callboard.acp.agent.waiting import outcome_of
from callboard.acp.contract import convert
from callboard.acp.contract.tool_calls import Diff
from callboard.tools.diffs import file_change
from callboard_rpc.common import CallId, Failure, FileChange, Location, TurnId, Usage
from callboard_rpc.events import ToolResult, TurnFinished

LINES = st.lists(
    st.sampled_from(["a", "b", "", "-c", "+d", "@@ -1 +1 @@", "\x0ce", "f\u2028g"]), max_size=12
)
TEXT = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@given(before=TEXT, after=TEXT)
def test_the_hunks_of_a_diff_are_what_was_and_what_is(before: str, after: str) -> None:
    """Each hunk's texts stand in the file before and after, and replacing the one by the other in turn makes
    the whole change."""
    change = file_change("/w/a.txt", before, after)
    text, at = before, 0
    for old, new in tools.hunks(change.diff):
        place = text.index(old, at)
        text = text[:place] + new + text[place + len(old) :]
        at = place + len(new)
    if before != after and "\n" in before + after:
        assert sum(1 for _ in tools.hunks(change.diff)) >= 1
    for old, new in tools.hunks(change.diff):
        assert old in before and new in after


def test_a_new_file_has_no_old_text_and_what_is_too_long_is_counted() -> None:
    (diff,) = tools.diffs([file_change("/w/a.txt", None, "one\n")])
    assert diff == Diff(path="/w/a.txt", old_text=None, new_text="one\n")
    (told,) = tools.diffs([file_change("/w/a.txt", None, "x" * 20_000 + "\n")])
    assert "1 lines added" in told.content.text  # type: ignore[union-attr]


def test_a_result_fits_a_frame_whatever_it_holds() -> None:
    change = FileChange(
        path="/w/a", operation="modify", added=1, removed=1,
        diff="--- a/w\n+++ b/w\n" + "@@ -1 +1 @@\n-\x00\n+\x01\n" * 4_000,
    )  # fmt: skip
    result = ToolResult(
        call_id=CallId("call_1"), name="x", status="error", text="\x00" * 90_000,
        changes=(change,) * 20, locations=(Location(path="relative", line=0), Location(path="/w/b", line=0)),
    )  # fmt: skip
    update = tools.ended(result, "edit")
    assert update.status == "failed"
    assert [(each.path, each.line) for each in update.locations or ()] == [("/w/b", 1)]
    assert len(tools.raw_input({"content": "é" * 100_000})["content"]) < 20_000
    assert len(orjson.dumps(convert.unstructure(update))) < 60 * 1024


@pytest.mark.parametrize(
    "status", ["denied", "cancelled", "superseded", "timed_out", "interrupted"]
)
def test_what_did_not_run_to_its_end_has_failed_with_its_words(status: str) -> None:
    result = ToolResult(call_id=CallId("c"), name="x", status=status, text="Because.")  # type: ignore[arg-type]
    update = tools.ended(result, "execute")
    assert update.status == "failed" and update.content
    assert update.content[0].content.text == "Because."  # type: ignore[union-attr]


def finished(outcome: str, **more: object) -> TurnFinished:
    return TurnFinished(
        turn_id=TurnId("trn_1"), outcome=outcome, answered_through=1, usage=Usage(), **more  # type: ignore[arg-type]
    )  # fmt: skip


BROKEN = Failure(kind="modelError", message="broken")


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        (finished("completed", stop_reason="end_turn", iterations=3), "end_turn"),
        (finished("completed", stop_reason="other", iterations=9), "end_turn"),
        (finished("completed", iterations=11), "max_turn_requests"),
        (finished("completed", stop_reason="max_tokens", iterations=11), "max_tokens"),
        (finished("completed", stop_reason="refusal"), "refusal"),
        (finished("cancelled"), "cancelled"),
        (finished("interrupted"), "cancelled"),
        (finished("failed", error=BROKEN), BROKEN),
        (finished("failed", error=Failure(kind="budgetExceeded", message="spent")), "max_tokens"),
        (finished("timed_out", error=BROKEN), BROKEN),
    ],
)
def test_why_a_prompt_stops(ended: TurnFinished, outcome: object) -> None:
    assert outcome_of(ended, 10) == outcome
