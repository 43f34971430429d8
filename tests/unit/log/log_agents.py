"""Random events of agents: also those that no faulty writer should write, in any order."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from callboard_rpc.common import AskId, InterruptId, MessageId, ReportId, SessionId, TurnId
from callboard_rpc.events import (
    AgentAsked,
    AgentClosed,
    AgentCloseRequested,
    AgentInterruptConsumed,
    AgentInterrupted,
    AgentInterruptRequested,
    AgentMessageQueued,
    AgentReplied,
    AgentReport,
    AgentReportCreated,
    AgentSpawned,
    AgentStatusChanged,
    Author,
    SessionClosed,
    SessionCreated,
    TriggersDropped,
)

_TEXTS = st.sampled_from(["so", "naïve 🙂", "x" * 70_000])
_KINDS = st.sampled_from(["steer", "cancel"])
_TIMES = st.sampled_from([None, "2031-01-01T00:00:00.000Z", "2031-01-02T00:00:00.000Z"])


def spawned(session_id: str, root_id: str, parent_id: str, name: str) -> AgentSpawned:
    """The first event of an agent's session."""
    return AgentSpawned(
        session=SessionCreated(
            session_id=SessionId(session_id),
            root_id=SessionId(root_id),
            parent_id=SessionId(parent_id),
            depth=1,
            cwd="/workspace",
            profile="default",
            mode="work",
            title=name,
        ),
        name=name,
        depth_left=1,
        message_allow=("other",),
    )


def events(new: Callable[[str], str], agent_id: str, asks: list[str]) -> st.SearchStrategy[Any]:
    """What can be written of an agent. `asks` are the questions that there were."""
    consumed = st.builds(
        AgentInterruptConsumed,
        interrupt_id=st.just(InterruptId("int")),
        kind=_KINDS,
        turn_id=st.just(TurnId("trn")),
    )
    interrupted = st.builds(
        AgentInterrupted,
        reason=_TEXTS,
        kind=st.sampled_from([None, "cancel", "abort"]),
        origin=st.sampled_from([None, "user", "parent", "clock"]),
    )
    return st.one_of(
        st.builds(AgentStatusChanged, status=st.sampled_from(["running", "failed", "interrupted"])),
        reports(new, agent_id),
        requests(new),
        consumed,
        interrupted,
        st.sampled_from([AgentCloseRequested(), AgentClosed(), SessionClosed(reason="r")]),
        st.just(TriggersDropped(seqs=(2,), reason="not needed")),
        st.builds(
            AgentMessageQueued,
            message_id=st.builds(lambda: MessageId(new("msg"))),
            kind=st.sampled_from(["information", "continue", "sibling"]),
            author=st.just(Author(kind="agent", name="other", id="ses_other")),
            text=_TEXTS,
        ),
        st.builds(
            AgentAsked,
            ask_id=st.builds(lambda: AskId(new("ask"))),
            text=_TEXTS,
            expects_reply=st.booleans(),
            expires_at=_TIMES,
        ),
        st.builds(
            AgentReplied,
            ask_id=st.sampled_from([AskId(each) for each in (*asks, "ask_none")]),
            outcome=st.sampled_from(["replied", "timed_out", "cancelled"]),
            text=st.sampled_from([None, "yes"]),
        ),
    )


def requests(new: Callable[[str], str]) -> st.SearchStrategy[AgentInterruptRequested]:
    return st.builds(
        AgentInterruptRequested,
        interrupt_id=st.builds(lambda: InterruptId(new("int"))),
        kind=st.sampled_from(["steer", "cancel", "abort", "interrupt"]),
        origin=st.sampled_from(["user", "parent"]),
        reason=_TEXTS,
        deadline_at=_TIMES,
    )


def reports(new: Callable[[str], str], agent_id: str) -> st.SearchStrategy[AgentReportCreated]:
    report = st.builds(
        AgentReport,
        report_id=st.builds(lambda: ReportId(new("rep"))),
        agent_id=st.just(SessionId(agent_id)),
        name=st.just("one"),
        status=st.sampled_from(["completed", "failed", "aborted"]),
        summary=_TEXTS,
        turn_id=st.just(TurnId("trn")),
        touched_files=st.sampled_from([(), ("/a", "/é")]),
    )
    return st.builds(AgentReportCreated, report=report)
