"""Streaming text beside the drafts of it that are saved."""

from callboard.log.redact import Redactor
from callboard.turns.deltas import Delta, Deltas, Numbering


def test_pieces_before_and_behind_a_saved_draft_are_of_two_segments() -> None:
    """Whoever has the draft must be able to go on with a whole delta: what is joined lies on one side of it."""
    deltas = Deltas()
    seen: list[Delta] = []
    deltas.listen(seen.append)
    numbering = Numbering(deltas, "ses_1", "trn_1", redactor=Redactor(()))
    numbering.publish("msg_1", "answer", "one ")
    numbering.publish("msg_1", "thought", "hm ")
    assert numbering.saved("msg_1") == {"answer": 1, "thought": 1}
    numbering.publish("msg_1", "answer", "two ")
    numbering.publish("call_1", "tool_output", "line ")
    assert numbering.saved("msg_1") == {"answer": 2, "thought": 1}
    numbering.publish("msg_1", "answer", "three ")
    assert [(d.kind, d.index, d.segment) for d in seen] == [
        ("answer", 0, 0), ("thought", 0, 0), ("answer", 1, 1), ("tool_output", 0, 0), ("answer", 2, 2)
    ]  # fmt: skip
