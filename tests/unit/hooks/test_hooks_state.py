"""What a lifecycle hook decides by how it ends (specs/execution.md 50); nothing is run here."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.config.hooks import HookCommand
from callboard.hooks.state import (
    MAX_CONTEXT,
    MAX_REASON,
    OBSERVED,
    SETTINGS,
    Decision,
    Finding,
    Ran,
    applies,
    finding,
    together,
)


def says(**value: Any) -> Ran:
    return Ran(exit_code=0, stdout=orjson.dumps(value))


def test_execution_50_exit_two_blocks_with_what_was_said_on_stderr() -> None:
    ran = Ran(exit_code=2, stdout=b'{"decision": "allow"}', stderr=b"  not on a Friday\n")
    assert finding(ran) == Finding(block="not on a Friday")
    assert finding(Ran(exit_code=2)).block is not None


@pytest.mark.parametrize(
    "ran",
    [
        Ran(exit_code=1, stderr=b"broken"),
        Ran(exit_code=3),
        Ran(exit_code=127),
        Ran(exit_code=143),
        Ran(exit_code=2, timed_out=True, stderr=b"block"),
        Ran(exit_code=0, stdout=b"fine"),
        Ran(exit_code=0, stdout=b'{"decision": "block"'),
        Ran(exit_code=0, stdout=b'{"decision": "block"}', cut=True),
        Ran(exit_code=0, stdout=b'[{"decision": "block"}]'),
        Ran(exit_code=0, stdout=b"\xff\xfe"),
        Ran(exit_code=0, stdout=b"[" * 60_000),
        says(decision="allow"),
        says(decision=2),
        says(decision="block", reason=["x"]),
        says(context=7),
    ],
)
def test_execution_50_any_other_end_is_a_fault_that_decides_nothing(ran: Ran) -> None:
    found = finding(ran)
    assert found.fault
    assert (found.block, found.context) == (None, None)


def test_execution_50_exit_zero_may_say_more_in_one_object() -> None:
    assert finding(Ran(exit_code=0)) == Finding()
    assert finding(Ran(exit_code=0, stdout=b" \n")) == Finding()
    assert finding(Ran(exit_code=0, stderr=b"chatter")) == Finding()
    assert finding(says(decision="block", reason="no")) == Finding(block="no")
    assert finding(says(decision="block")).block is not None
    assert finding(says(context=" look ", more=1)) == Finding(context="look")
    assert finding(says(decision=None)) == Finding()


def test_what_is_said_has_bounds() -> None:
    assert len(finding(Ran(exit_code=2, stderr=b"x" * 60_000)).block or "") == MAX_REASON
    assert len(finding(says(context="x" * 60_000)).context or "") == MAX_CONTEXT


FINDINGS = st.builds(
    Finding, block=st.none() | st.just("no"), context=st.none() | st.text(min_size=1)
)


@given(st.lists(FINDINGS))
def test_execution_50_the_first_objection_stops_and_observers_decide_nothing(
    findings: list[Finding],
) -> None:
    looked = 0

    def each() -> Any:
        nonlocal looked
        for found in findings:
            looked += 1
            yield found

    decision = together("PreToolUse", each())
    first = next((n for n, found in enumerate(findings) if found.block), None)
    assert looked == (len(findings) if first is None else first + 1)
    assert (decision.block is None) == (first is None)
    for event in OBSERVED:
        assert together(event, findings) == Decision()


def test_every_event_has_a_setting_of_its_own() -> None:
    assert len(set(SETTINGS.values())) == len(SETTINGS) == 8


def test_a_command_is_for_the_tools_that_it_names() -> None:
    for_writes = HookCommand(command="x", match=("write_*", "edit_file"))
    assert applies(for_writes, "write_file")
    assert applies(for_writes, "edit_file")
    assert not applies(for_writes, "run_command")
    assert not applies(for_writes, None)
    assert applies(HookCommand(command="x"), None)
