"""What the tests of groups share: a root and its agents at one board, in one host."""

from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from agents_kit import Cast, Troupe, troupe
from attrs import define, field

from callboard.groups.membership import Participant, join, the_group
from callboard.groups.projection import PROJECTION, task_of
from callboard.groups.projection import SQL as GROUP_SQL
from callboard.groups.service import Groups
from callboard.groups.state import GroupState, replay
from callboard.groups.tasks import NewTask, Said
from callboard_rpc.common import Actor, SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.groups import Group, GroupTask
from harness.inside import CLIENT, PERSON
from harness.puppets import calls, of, speaks

GROUP_EVENTS = frozenset(PROJECTION.apply) - {"session_deleted"}


@define
class Board:
    """A root with agents who rest, each named by what it is called; ``root`` is the root's."""

    t: Troupe
    root: str
    ids: dict[str, str] = field(factory=dict[str, str])

    @property
    def groups(self) -> Groups:
        service = self.t.host.services["groups"]
        assert isinstance(service, Groups)
        return service

    def who(self, name: str = "root") -> Participant:
        """One who acts through the service, as by a tool of theirs."""
        agent_id = SessionId(self.ids[name])
        by = Actor(kind="agent", id=agent_id)
        return Participant(root_id=SessionId(self.root), agent_id=agent_id, by=by)

    async def hire(self, name: str, *, joins: bool = True, **more: Any) -> str:
        """A child that has done its first turn and rests; a member, unless told otherwise."""
        agent = await self.t.spawn(self.root, name, **more)
        await self.t.ended(agent)
        await self.t.idle(agent.agent_id)
        self.ids[name] = agent.agent_id
        if joins:
            who = self.who(name)
            await self.t.host.log.transact(
                lambda tx: join(tx, who, the_group(tx, who), who.agent_id)
            )
        return agent.agent_id

    async def task(self, title: str = "a task", **more: Any) -> GroupTask:
        return await self.groups.create(self.who(), NewTask(title=title, **more))

    async def claim(self, name: str, task: GroupTask | str) -> GroupTask:
        return await self.groups.claim(self.who(name), id_of(task))

    async def start(self, name: str, task: GroupTask | str) -> GroupTask:
        return await self.groups.change(self.who(name), id_of(task), "start")

    async def complete(self, name: str, task: GroupTask | str, **said: Any) -> GroupTask:
        told = Said(**{"summary": "done", **said})
        return await self.groups.change(self.who(name), id_of(task), "complete", told)

    async def block(self, name: str, task: GroupTask | str, reason: str = "stuck") -> GroupTask:
        told = Said(reason=reason)
        return await self.groups.change(self.who(name), id_of(task), "block", told)

    async def release(self, name: str, task: GroupTask | str) -> GroupTask:
        return await self.groups.change(self.who(name), id_of(task), "release")

    async def cancel(self, name: str, task: GroupTask | str) -> GroupTask:
        return await self.groups.change(self.who(name), id_of(task), "cancel")

    async def reassign(self, name: str, task: GroupTask | str, to: str) -> GroupTask:
        return await self.groups.reassign(self.who(name), id_of(task), self.ids.get(to, to))

    async def do(self, operation: str, name: str, task: GroupTask | str, to: str = "") -> GroupTask:
        if operation == "reassign":
            return await self.reassign(name, task, to)
        return await getattr(self, operation)(name, task)

    async def send(self, name: str, to: str, text: str) -> Any:
        """`to` is ``group``, ``root``, or a member's name."""
        target, agent_id = (to, None) if to in ("group", "root") else ("agent", self.ids[to])
        return await self.groups.send(self.who(name), target, agent_id, text)  # type: ignore[arg-type]

    async def use(self, name: str, *requested: tuple[str, Any]) -> list[str]:
        """What a session is told of tools that its model calls one after the other, in one turn."""
        session_id = self.ids[name]
        before = len(of(await self.t.log(session_id), "tool_result"))
        scenes = [*(calls(each) for each in requested), speaks("well then")]
        self.t.cast.parts["root" if name == "root" else name] = scenes
        await self.goes_on(name)
        return [result.text for result in of(await self.t.log(session_id), "tool_result")][before:]

    async def goes_on(self, name: str, text: str = "go on") -> None:
        """One more turn of somebody who rests."""
        session_id = self.ids[name]
        if name == "root":
            await self.t.say(session_id, text)
        else:
            await self.t.agents.send(session_id, text, goes_on=True, author=PERSON, by=CLIENT)
        await self.t.idle(session_id)

    async def group(self) -> Group:
        group = await self.groups.reading.group(self.root)
        assert group is not None
        return group

    async def seen(self, task: GroupTask | str) -> GroupTask:
        return await self.groups.reading.task(self.root, id_of(task))

    async def events(self, kind: str | None = None, session_id: str | None = None) -> list[Any]:
        """The data of events of groups in a session's log (the root's, unless told)."""
        return [
            record.value
            for record in await self.t.log(session_id or self.root)
            if (record.type == kind if kind else record.type in GROUP_EVENTS)
        ]

    def head(self) -> int:
        """How many events there are, of all sessions."""
        ((number,),) = self.t.host.log.glance("SELECT count(*) FROM events")
        return number


def id_of(task: GroupTask | str) -> str:
    return task if isinstance(task, str) else task.task_id


@asynccontextmanager
async def board(
    folder: Path, *names: str, environ: Mapping[str, str] | None = None, cast: Cast | None = None
) -> AsyncGenerator[Board]:
    async with troupe(folder, cast, environ=environ) as t:
        yield await board_of(t, *names)


async def board_of(t: Troupe, *names: str) -> Board:
    root = await t.root()
    b = Board(t, root, {"root": root})
    for name in names:
        await b.hire(name)
    return b


@asynccontextmanager
async def again(folder: Path, before: Board) -> AsyncGenerator[Board]:
    """The same board in the next host."""
    async with troupe(folder, before.t.cast) as t:
        yield Board(t, before.root, dict(before.ids))


async def refused(b: Board, doing: Awaitable[Any]) -> CallboardError:
    """The error of something that is refused, and then has written nothing."""
    events, rows = b.head(), tables(b)
    with pytest.raises(CallboardError) as caught:
        await doing
    assert b.head() == events
    assert tables(b) == rows
    return caught.value


# --- tables -------------------------------------------------------------------------------------


def tables(b: Board) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all groups of the store, by table."""
    return {
        name: sorted(b.t.host.log.glance(f"SELECT * FROM {name}"), key=repr)
        for name in PROJECTION.tables
    }


async def replayed(b: Board) -> GroupState | None:
    records = [(record.value, record.at) for record in await b.t.log(b.root)]
    state = replay(records, SessionId(b.root))
    assert state == replay(records, SessionId(b.root))
    return state


async def must_be_as_replayed(b: Board) -> None:
    """The tables say what the log says: group, members, and every field of every task."""
    state = await replayed(b)
    rows = b.t.host.log.glance
    live = {task.task_id: task for task in map(task_of, rows(GROUP_SQL["tasks"], b.root))}
    if state is None:
        assert not live and not rows(GROUP_SQL["group"], b.root)
        return
    assert rows(GROUP_SQL["group"], b.root) == [(state.group_id, state.name, state.created_at)]
    assert tuple(m for (m,) in rows(GROUP_SQL["members"], b.root)) == state.members
    assert list(live) == [task.task_id for task in state.in_order()]
    for task_id, task in state.tasks.items():
        assert attrs.asdict(live[task_id]) == attrs.asdict(task)


async def empty_all(b: Board) -> None:
    """Takes all rows of groups out of the store, behind the log's back."""

    def commit(tx: Any) -> None:
        for name in PROJECTION.tables:
            tx.execute(f"DELETE FROM {name}")

    await b.t.host.log.transact(commit)
    assert not any(tables(b).values())


def messages_in(records: Sequence[Any]) -> list[str]:
    """What members have said to a session, as its model reads it, in order."""
    return [d.text for d in of(records, "directive") if d.text.startswith("<group-message")]
