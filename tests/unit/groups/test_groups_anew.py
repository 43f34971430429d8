"""Tables that are made anew at one go have the rows that the projection has made, event by event, whatever
the events are (coordination 86, 87)."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from callboard.groups.anew import rebuild
from callboard.groups.projection import PROJECTION
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.store import open_store
from callboard.log.transaction import Transaction
from callboard_rpc.common import Actor, GroupId, MessageId, SessionId, TaskId
from callboard_rpc.events import (
    AgentGroupCreated,
    AgentGroupMemberJoined,
    GroupMessageDelivered,
    GroupMessageQueued,
    GroupTaskClaimed,
    GroupTaskCreated,
    GroupTaskReleased,
    GroupTaskStatusChanged,
)

ROOT = SessionId("ses_root")
AGENTS = (ROOT, SessionId("ses_a"), SessionId("ses_b"))
_GROUP = GroupId("grp_1")
_ACTOR = Actor(kind="client", id="tests")

agents = st.sampled_from(AGENTS)
task_ids = st.sampled_from([TaskId(f"tsk_{n}") for n in range(3)])
message_ids = st.sampled_from([MessageId(f"msg_{n}") for n in range(3)])
texts = st.sampled_from(["", "one", "two"])
items = st.lists(st.sampled_from(["a", "B"]), max_size=2).map(tuple)

of_the_root: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        AgentGroupCreated, group_id=st.sampled_from([_GROUP, GroupId("grp_2")]), name=texts
    ),
    st.builds(AgentGroupMemberJoined, group_id=st.just(_GROUP), agent_id=agents),
    st.builds(
        GroupTaskCreated, task_id=task_ids, group_id=st.just(_GROUP), title=texts, created_by=agents,
        dependencies=st.lists(task_ids, max_size=2).map(tuple), required=st.booleans(),
    ),
    st.builds(GroupTaskClaimed, task_id=task_ids, agent_id=agents),
    st.builds(GroupTaskReleased, task_id=task_ids, agent_id=agents),
    st.builds(
        GroupTaskStatusChanged,
        task_id=task_ids,
        status=st.sampled_from(["in_progress", "completed", "blocked", "cancelled", "claimed"]),
        agent_id=agents, assignee=st.none() | agents, summary=st.none() | texts,
        reason=st.none() | texts, findings=items, touched_files=items,
    ),
    st.builds(
        GroupMessageQueued, message_id=message_ids, group_id=st.just(_GROUP), sender=agents,
        to=st.just("group"), recipients=st.lists(agents, unique=True).map(tuple), text=texts,
    ),
)  # fmt: skip
deliveries = st.builds(
    GroupMessageDelivered, message_id=message_ids, group_id=st.just(_GROUP), sender=agents
)
Told = tuple[SessionId, Any]
events: st.SearchStrategy[Told] = st.one_of(
    st.tuples(st.just(ROOT), of_the_root), st.tuples(agents, deliveries)
)


def _rows(tx: Transaction) -> dict[str, list[Any]]:
    return {name: sorted(tx.all(f"SELECT * FROM {name}"), key=repr) for name in PROJECTION.tables}


def _play(tx: Transaction, story: list[Told]) -> None:
    """A log with these events: each in the root's, but for what agents have read, which they have once it
    was queued."""
    for session_id in AGENTS:
        tx.begin_session(session_id, ROOT)
    queued: set[str] = set()
    for session_id, data in story:
        if isinstance(data, GroupMessageQueued):
            queued.add(data.message_id)
        if session_id == ROOT or data.message_id in queued:
            tx.append(session_id, data, actor=_ACTOR)


async def _check(story: list[Told]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ids = IdSource()
        store = open_store(Path(folder) / "store.db", ids=ids, now=utc_now)
        async with Log(store, ids=ids, now=utc_now, projections=[PROJECTION]) as log:

            def compare(tx: Transaction) -> None:
                _play(tx, story)
                kept = _rows(tx)
                rebuild(tx, ROOT)
                assert _rows(tx) == kept

            await log.transact(compare)


_QUEUED = GroupMessageQueued(
    message_id=MessageId("msg_0"), group_id=_GROUP, sender=AGENTS[1], to="group",
    recipients=(ROOT, AGENTS[2]), text="one",
)  # fmt: skip
_READ = GroupMessageDelivered(message_id=MessageId("msg_0"), group_id=_GROUP, sender=AGENTS[1])
_READ_TWICE: list[Told] = [(ROOT, _QUEUED), *[(each, _READ) for each in AGENTS for _ in range(2)]]
"""The first marker of each counts."""


@example(_READ_TWICE, True)
@given(st.lists(events, max_size=40), st.booleans())
@settings(max_examples=80, deadline=None)
def test_coordination_86_87_what_is_made_at_one_go_is_what_was_made_event_by_event(
    story: list[Told], begun: bool
) -> None:
    beginning = [(ROOT, AgentGroupCreated(group_id=_GROUP, name="house"))] if begun else []
    asyncio.run(_check([*beginning, *story]))
