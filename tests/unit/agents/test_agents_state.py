"""The pure reducer of an agent, over random histories (coordination 4, interrupts-and-peers 1-6, 16)."""

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from callboard.agents.state import AgentState, apply, has_ended, in_order, replay, settled, spawned
from callboard_rpc.common import InterruptId, ReportId, SessionId, TurnId
from callboard_rpc.events import (
    AgentClosed,
    AgentCloseRequested,
    AgentInterruptConsumed,
    AgentInterrupted,
    AgentInterruptRequested,
    AgentReport,
    AgentReportCreated,
    AgentSpawned,
    AgentStatusChanged,
    Message,
    SessionClosed,
    SessionCreated,
    TurnFinished,
)

DEADLINES = ["2031-01-01T00:00:00.000Z", "2031-01-02T00:00:00.000Z", "2031-01-03T00:00:00.000Z"]


def begin(name: str = "one", agent_id: str = "ses_a") -> AgentSpawned:
    created = SessionCreated(
        session_id=SessionId(agent_id), root_id=SessionId("ses_r"), parent_id=SessionId("ses_r"),
        cwd="/w", profile="default", mode="work", depth=1,
    )  # fmt: skip
    return AgentSpawned(session=created, name=name, depth_left=0)


def wants(kind: Any, deadline_at: str | None = None, reason: str = "so") -> AgentInterruptRequested:
    return AgentInterruptRequested(
        interrupt_id=InterruptId(reason), kind=kind, origin="user", reason=reason,
        deadline_at=deadline_at,
    )  # fmt: skip


def reported(status: Any) -> AgentReportCreated:
    return AgentReportCreated(
        report=AgentReport(
            report_id=ReportId("rep"), agent_id=SessionId("ses_a"), name="one", status=status,
            summary="x", turn_id=TurnId("trn"),
        )
    )  # fmt: skip


def consumed(kind: Any) -> AgentInterruptConsumed:
    return AgentInterruptConsumed(interrupt_id=InterruptId("int"), kind=kind, turn_id=TurnId("trn"))


RUNS = AgentStatusChanged(status="running")
ENDS = (
    reported("completed"),
    reported("failed"),
    reported("aborted"),
    AgentInterrupted(reason="gone"),
    AgentStatusChanged(status="failed"),
)
EVENTS = st.one_of(
    st.sampled_from(
        [RUNS, *ENDS, AgentCloseRequested(), AgentClosed(), SessionClosed(reason=None)]
    ),
    st.builds(
        wants,
        st.sampled_from(["steer", "cancel", "abort", "interrupt"]),
        st.sampled_from([None, *DEADLINES]),
        st.text(max_size=3),
    ),
    st.builds(consumed, st.sampled_from(["steer", "cancel"])),
)
HISTORIES = st.lists(EVENTS, max_size=25)


def after(*events: Any) -> AgentState:
    state = replay([begin(), *events])
    assert state is not None
    return state


def test_coordination_4_a_spawned_agent_is_starting_and_without_it_there_is_none() -> None:
    assert after() == spawned(begin()) and after().status == "starting"
    assert replay([]) is None and replay([RUNS, reported("completed")]) is None


@given(HISTORIES, HISTORIES)
def test_coordination_4_only_closed_is_final(before: list[Any], later: list[Any]) -> None:
    state = after(*before, AgentClosed())
    for event in later:
        state = apply(state, event)
        assert state.status == "closed"
    reopened = after(AgentInterrupted(reason="x"), RUNS)
    assert reopened.status == "running"


@given(HISTORIES)
def test_coordination_4_wishes_and_strangers_change_no_status(history: list[Any]) -> None:
    state = after(*history)
    for event in (
        wants("cancel", DEADLINES[0]),
        consumed("steer"),
        AgentCloseRequested(),
        object(),
    ):
        assert apply(state, event).status == state.status
    foreign: list[Any] = [
        Message.__new__(Message),
        TurnFinished.__new__(TurnFinished),
    ]
    for event in foreign:
        assert apply(state, event) is state


@given(HISTORIES)
def test_peers_16_a_turn_that_begins_knows_nothing_of_the_one_before(history: list[Any]) -> None:
    ended = after(*history, RUNS, ENDS[3])
    if ended.status != "closed":
        state = apply(ended, RUNS)
        assert (state.pending, state.winding, state.deadline_at) == (None, None, None)
        assert state.interrupted is None


@given(HISTORIES, st.sampled_from(ENDS))
def test_peers_16_every_end_empties_the_slot(history: list[Any], end: Any) -> None:
    state = after(*history, end)
    if state.status != "closed":
        assert (state.pending, state.winding, state.deadline_at) == (None, None, None)


@given(st.lists(st.sampled_from(DEADLINES), min_size=1, max_size=4), st.booleans())
def test_peers_6_the_first_deadline_stands(deadlines: list[str], told: bool) -> None:
    events = [wants("cancel", each, each) for each in deadlines]
    if told:
        events.insert(1, consumed("cancel"))  # type: ignore[arg-type]
    state = after(RUNS, *events)
    assert state.deadline_at == deadlines[0]


@given(HISTORIES)
def test_peers_6_only_what_has_a_turn_that_nobody_has_ended_has_a_deadline(
    history: list[Any],
) -> None:
    state = after()
    for event in history:
        state = apply(state, event)
        if state.deadline_at is not None:
            assert state.status in ("starting", "running") and not state.closing
            assert event not in ENDS
            assert not (
                isinstance(event, AgentInterruptRequested) and event.kind in ("abort", "interrupt")
            )


def test_peers_6_who_is_to_end_at_once_has_no_deadline_and_nothing_gives_it_one_at_rest() -> None:
    cancel = wants("cancel", DEADLINES[0])
    for kind in ("abort", "interrupt"):
        assert after(RUNS, cancel, wants(kind)).deadline_at is None
    assert after(RUNS, cancel, wants("steer")).deadline_at == DEADLINES[0]
    for end in (*ENDS, AgentClosed()):
        assert after(RUNS, end, cancel).deadline_at is None


def test_peers_1_a_steer_between_two_turns_is_kept_for_the_second_and_nothing_else_is() -> None:
    done = (RUNS, reported("completed"))
    steer = wants("steer")
    assert after(*done, steer, RUNS).pending == steer
    assert after(*done, steer, AgentInterrupted(reason="x"), RUNS).pending is None
    for kind in ("cancel", "abort", "interrupt"):
        assert after(*done, wants(kind), RUNS).pending is None


def test_peers_1_to_5_the_slot() -> None:
    steer, other, cancel = wants("steer", reason="a"), wants("steer", reason="b"), wants("cancel")
    assert after(RUNS, steer, other).pending == other  # the newest
    assert after(RUNS, steer, cancel).pending == cancel
    told = after(RUNS, cancel, consumed("cancel"))
    assert (told.pending, told.winding) == (None, cancel)
    steered = after(RUNS, steer, consumed("steer"))
    assert (steered.pending, steered.winding, steered.status) == (None, None, "running")
    # what was said before its first turn is kept for it
    assert after(steer, RUNS).pending == steer


def test_coordination_4_a_report_sets_the_status() -> None:
    for status, shown in (
        ("completed", "completed"),
        ("failed", "failed"),
        ("aborted", "interrupted"),
    ):
        state = after(RUNS, reported(status))
        assert state.status == shown and state.report == reported(status).report
        assert state.is_terminal
    assert not after(RUNS).is_terminal and not after().is_terminal


@given(st.permutations([("b", "2"), ("a", "2"), ("a", "1"), ("B", "9"), ("ä", "0")]))
def test_coordination_20_lists_go_by_name_and_then_id(order: list[tuple[str, str]]) -> None:
    agents = [spawned(begin(name, key)) for name, key in order]
    found = [(a.name, a.agent_id) for a in in_order(agents)]
    assert found == sorted(order)
    for one, other in itertools.pairwise(found):
        assert one < other


def test_coordination_41_who_has_nothing_more_to_tell() -> None:
    rests = {"is_asked": False, "is_told": True}
    done = after(RUNS, reported("completed"))
    assert settled(done, **rests) and not settled(done, is_asked=False, is_told=False)
    assert settled(after(AgentClosed()), is_asked=True, is_told=False)
    assert not settled(after(), **rests) and not settled(after(RUNS), **rests)
    assert settled(after(AgentInterrupted(reason="x")), **rests)


def test_coordination_41_whose_next_turn_is_asked_for_has_not_ended() -> None:
    done = after(RUNS, reported("completed"))
    assert has_ended(done, is_asked=False) and not has_ended(done, is_asked=True)
    assert not settled(done, is_asked=True, is_told=True)
    assert not has_ended(after(RUNS), is_asked=False)
    # of these no turn is to come, whatever waits for them
    assert has_ended(after(AgentClosed()), is_asked=True)
    assert has_ended(after(RUNS, reported("completed"), AgentCloseRequested()), is_asked=True)
