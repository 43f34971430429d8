"""Streaming text beside the drafts of it that are saved."""

from callboard.log.redact import Redactor
from callboard.turns.deltas import Delta, Deltas, Numbering, Said


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


def test_what_was_said_is_all_that_was_passed_on_and_a_new_segment_begins_with_it() -> None:
    deltas = Deltas()
    seen: list[Delta] = []
    deltas.listen(seen.append)
    assert deltas.said("trn_1") is None
    numbering = Numbering(deltas, "ses_1", "trn_1", redactor=Redactor(()))
    numbering.publish("call_1", "tool_output", "line ")
    assert deltas.said("trn_1") is None
    numbering.publish("msg_1", "thought", "hm ")
    numbering.publish("msg_1", "answer", "one ")
    assert deltas.said("trn_1") == Said("msg_1", "one ", "hm ", {"answer": 1, "thought": 1})
    numbering.publish("msg_1", "answer", "two ")
    assert deltas.said("trn_1") == Said("msg_1", "one two ", "hm ", {"answer": 2, "thought": 1})
    assert [(d.index, d.segment) for d in seen if d.kind == "answer"] == [(0, 0), (1, 1)]
    numbering.publish("msg_2", "answer", "next ")
    assert deltas.said("trn_1") == Said("msg_2", "next ", "", {"answer": 1})
    numbering.committed("msg_1")
    assert deltas.said("trn_1") is not None
    numbering.committed("msg_2")
    assert deltas.said("trn_1") is None


def test_of_a_turn_that_is_over_nothing_is_kept() -> None:
    deltas = Deltas()
    numbering = Numbering(deltas, "ses_1", "trn_1", redactor=Redactor(()))
    numbering.publish("msg_1", "answer", "one ")
    numbering.close()
    assert deltas.said("trn_1") is None
    numbering.publish("msg_2", "answer", "of a task that was left behind")
    assert deltas.said("trn_1") is None
