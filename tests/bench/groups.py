"""What a task board costs: a claim beside one durable transaction of bare SQLite, a look at a large board, and
the rebuild of a long one with which every host begins.
"""

import asyncio
import sqlite3
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from agents import agents_of, hosting, new_root, rest
from attrs import define, field
from figure import Figure, Topic, rounds

from callboard.agents.examining import Caller, Wanted
from callboard.groups.anew import rebuild
from callboard.groups.membership import Participant, join, the_group
from callboard.groups.projection import PROJECTION
from callboard.groups.service import Groups
from callboard.groups.tasks import NewTask
from callboard.host import Host
from callboard.log.transaction import Transaction
from callboard_rpc.common import Actor, GroupId, MessageId, SessionId, TaskId
from callboard_rpc.events import (
    GroupMessageQueued,
    GroupTaskClaimed,
    GroupTaskCreated,
    GroupTaskReleased,
    GroupTaskStatusChanged,
    TaskStatus,
)

_TASKS = 1_000
_MEMBERS = 100
_EVENTS = 100_000
_OF_A_TASK = 10
"""Events of each task in the long board, a message among them."""
_PIECE = 5_000
_CLIENT = Actor(kind="client", id="bench")


def _groups(host: Host) -> Groups:
    service = host.services["groups"]
    assert isinstance(service, Groups)
    return service


def _who(root_id: str, agent_id: str) -> Participant:
    by = Actor(kind="agent", id=agent_id)
    return Participant(root_id=SessionId(root_id), agent_id=SessionId(agent_id), by=by)


async def _hire(host: Host, root_id: str, count: int) -> list[str]:
    """Agents that have joined the group and rest."""
    caller = Caller(parent_id=root_id, by=_CLIENT)
    made = [
        (await agents_of(host).spawn(caller, Wanted(name=f"agent {n:03}", message="say"))).agent_id
        for n in range(count)
    ]
    await rest(host, [str(each) for each in made])

    def all_join(tx: Transaction) -> None:
        for each in made:
            who = _who(root_id, each)
            join(tx, who, the_group(tx, who), who.agent_id)

    await host.log.transact(all_join)
    return [str(each) for each in made]


# --- the floor ----------------------------------------------------------------------------------

_BARE = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE tasks (task_id TEXT PRIMARY KEY, status TEXT, owner TEXT) WITHOUT ROWID;
CREATE TABLE log (pos INTEGER PRIMARY KEY, session TEXT, seq INTEGER, data TEXT, UNIQUE (session, seq));
"""


class _Bare:
    """A claim with nothing but sqlite3: a compare-and-set, and a row that tells of it."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.executescript(_BARE)
        self.number = 0

    def prepare(self) -> None:
        """A task that nobody has."""
        self.number += 1
        self.connection.execute(
            "INSERT INTO tasks VALUES (?, 'pending', NULL)", (f"tsk_{self.number}",)
        )

    def claim(self) -> None:
        """One durable transaction."""
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        execute("SELECT status FROM tasks WHERE task_id = ?", (f"tsk_{self.number}",)).fetchone()
        execute(
            "UPDATE tasks SET status = 'claimed', owner = 'ses_bench' WHERE task_id = ?",
            (f"tsk_{self.number}",),
        )
        execute(
            "INSERT INTO log (session, seq, data) VALUES ('ses_bench', ?, ?)",
            (self.number, "x" * 300),
        )
        execute("COMMIT")


@define
class _Claims:
    """Seconds, of each claim and of what was done beside it."""

    ours: list[float] = field(factory=list[float])
    bare: list[float] = field(factory=list[float])
    """The transaction of the floor, in the thread that measures."""
    awaited: list[float] = field(factory=list[float])
    """The same in a thread, for a loop that goes on meanwhile: what a server can have at best, since no disk may
    stop its loop."""
    appended: list[float] = field(factory=list[float])
    """One event, merely appended to the log."""


async def _claims(count: int) -> _Claims:
    """One claim after the other, each followed by those of the floor on the same disk."""
    took = _Claims()
    loop = asyncio.get_running_loop()
    async with hosting() as (host, _, folder):
        root_id = await new_root(host, folder)
        (agent_id,) = await _hire(host, root_id, 1)
        groups, root, agent = _groups(host), _who(root_id, root_id), _who(root_id, agent_id)
        tasks = [(await groups.create(root, NewTask(title=f"task {n}"))).task_id
                 for n in range(count + 5)]  # fmt: skip
        floor = _Bare(Path(folder) / "bare.db")
        with closing(floor.connection), ThreadPoolExecutor(1) as thread:
            for task_id in tasks:
                began = time.perf_counter()
                task = await groups.claim(agent, task_id)
                took.ours.append(time.perf_counter() - began)
                if task.assignee != agent_id:
                    raise RuntimeError(f"{task_id} belongs to {task.assignee}")
                floor.prepare()
                began = time.perf_counter()
                await loop.run_in_executor(thread, floor.claim)
                took.awaited.append(time.perf_counter() - began)
                floor.prepare()
                began = time.perf_counter()
                floor.claim()
                took.bare.append(time.perf_counter() - began)
                event = GroupTaskReleased(task_id=TaskId("tsk_none"), agent_id=SessionId(agent_id))
                began = time.perf_counter()
                await host.log.append(agent_id, event, actor=_CLIENT)
                took.appended.append(time.perf_counter() - began)
    return took


# --- a large board ------------------------------------------------------------------------------


def _status(number: int) -> TaskStatus | None:
    """How a task stands; None for one that nobody has taken yet."""
    match number % 20:
        case 0:
            return "claimed"
        case 1:
            return "in_progress"
        case 2:
            return "blocked"
        case 3 | 4 | 5 | 6 | 7:
            return None
        case _:
            return "completed"


def _board(root_id: str, group_id: GroupId, members: list[str]) -> Iterator[object]:
    """Tasks in all states, with dependencies, paths and findings: each member has one, or is stuck with it;
    of the others two thirds are done."""
    for number in range(_TASKS):
        task_id = TaskId(f"tsk_{number:05}")
        behind = (number - 1, number - 7) if number > 10 else ()
        yield GroupTaskCreated(
            task_id=task_id,
            group_id=group_id,
            title=f"Mend part {number} of the house",
            created_by=SessionId(root_id),
            description="Look at it first, then mend it, and say what was found. " * 4,
            dependencies=tuple(TaskId(f"tsk_{each:05}") for each in behind),
            expected_paths=tuple(f"src/part{number // 2}/file{n}.py" for n in range(3)),
        )
        status = _status(number)
        if status is None:
            continue
        owner = SessionId(members[number % len(members)])
        yield GroupTaskClaimed(task_id=task_id, agent_id=owner)
        if status != "claimed":
            yield GroupTaskStatusChanged(
                task_id=task_id,
                status=status,
                agent_id=owner,
                summary="It was loose, and is not any more.",
                touched_files=(f"src/part{number}/file0.py",),
            )


async def _looks(count: int) -> list[float]:
    """A look at a board of a thousand tasks and a hundred members."""
    samples: list[float] = []
    async with hosting() as (host, _, folder):
        root_id = await new_root(host, folder)
        members = await _hire(host, root_id, _MEMBERS)
        groups = _groups(host)
        first = await groups.create(_who(root_id, root_id), NewTask(title="first"))
        await _append(host, root_id, list(_board(root_id, first.group_id, members)))
        for _ in range(count):
            began = time.perf_counter()
            group = await groups.reading.group(root_id)
            samples.append(time.perf_counter() - began)
            if group is None or len(group.members) != _MEMBERS + 1:
                raise RuntimeError("members are missing")
            if group.counts.total != _TASKS + 1 or not group.conflicts:
                raise RuntimeError(f"the board is another one: {group.counts}")
    return samples


async def _append(host: Host, root_id: str, events: list[object]) -> None:
    for start in range(0, len(events), _PIECE):

        def write(tx: Transaction, piece: list[object]) -> None:
            for event in piece:
                tx.append(root_id, event, actor=_CLIENT)

        await host.log.transact(lambda tx, p=events[start : start + _PIECE]: write(tx, p))


# --- a long one ---------------------------------------------------------------------------------


def _history(root_id: str, group_id: GroupId, members: list[str]) -> Iterator[object]:
    """Each task is made, taken and given back several times, spoken of, and completed."""
    for number in range(_EVENTS // _OF_A_TASK):
        task_id = TaskId(f"tsk_{number:05}")
        owner = SessionId(members[number % len(members)])
        yield GroupTaskCreated(
            task_id=task_id,
            group_id=group_id,
            title=f"Mend part {number} of the house",
            created_by=SessionId(root_id),
            expected_paths=(f"src/part{number}.py",),
        )
        for _ in range(3):
            yield GroupTaskClaimed(task_id=task_id, agent_id=owner)
            yield GroupTaskReleased(task_id=task_id, agent_id=owner)
        yield GroupTaskClaimed(task_id=task_id, agent_id=owner)
        yield GroupMessageQueued(
            message_id=MessageId(f"msg_{number:05}"),
            group_id=group_id,
            sender=owner,
            to="root",
            recipients=(SessionId(root_id),),
            text=f"I am at part {number}, and it is loose.",
        )
        yield GroupTaskStatusChanged(
            task_id=task_id, status="completed", agent_id=owner, summary="It is not loose any more."
        )


async def _rebuilds(count: int) -> list[float]:
    samples: list[float] = []
    async with hosting() as (host, _, folder):
        root_id = await new_root(host, folder)
        members = await _hire(host, root_id, 10)
        ((group_id,),) = await host.log.query("SELECT group_id FROM agent_groups")
        await _append(host, root_id, list(_history(root_id, group_id, members)))
        before = await _rows(host)
        for _ in range(count):
            began = time.perf_counter()
            await host.log.transact(lambda tx: rebuild(tx, root_id))
            samples.append(time.perf_counter() - began)
            if await _rows(host) != before:
                raise RuntimeError("the rebuilt tables are not what they were")
    return samples


async def _rows(host: Host) -> list[Any]:
    return [await host.log.query(f"SELECT * FROM {name}") for name in PROJECTION.tables]


def _ms(seconds: list[float]) -> list[float]:
    """Without those of the first rounds, which find nothing warm."""
    return [1000 * each for each in seconds[5:]]


def measure(thorough: float) -> list[Figure]:
    claims = asyncio.run(_claims(rounds(200, thorough)))
    looks = asyncio.run(_looks(rounds(50, thorough)))
    rebuilds = asyncio.run(_rebuilds(rounds(3, thorough)))
    return [
        Figure(
            name="a task claimed",
            unit="ms",
            ours=_ms(claims.ours),
            floor=_ms(claims.bare),
            target=1.5 * statistics.median(_ms(claims.bare)),
            note="beside one durable transaction of sqlite3",
        ),
        Figure(
            name="the same, beside that transaction in a thread that a loop waits for",
            unit="ms",
            ours=_ms(claims.ours),
            floor=_ms(claims.awaited),
        ),
        Figure(
            name="the same, beside one event that is merely appended",
            unit="ms",
            ours=_ms(claims.ours),
            floor=_ms(claims.appended),
        ),
        Figure(
            name="a board of 1,000 tasks and 100 members, looked at",
            unit="ms",
            ours=[1000 * s for s in looks],
            target=10,
        ),
        Figure(name="100,000 events of a group, rebuilt", unit="s", ours=rebuilds, target=2),
    ]


TOPIC = Topic(name="groups", about="a task board", measure=measure)
