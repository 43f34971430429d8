"""Many agents of several processes at one board: each task has one owner, each message is read once
(coordination 82, 98, 99)."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from callboard.agents.examining import Caller, Wanted
from callboard.agents.service import Agents
from callboard.groups.membership import Participant, join, the_group
from callboard.groups.projection import PROJECTION
from callboard.groups.service import Groups
from callboard.groups.state import replay
from callboard.groups.tasks import NewTask
from callboard.host import Host
from callboard_rpc.common import Actor, SessionId
from harness.inside import CLIENT, host_in, idle, log_of, new_session
from harness.process import scenario

pytestmark = pytest.mark.anyio

_PROGRAM = Path(__file__).with_name("claiming_host.py")
_TESTS = Path(__file__).parents[1]
_MANY = {"CALLBOARD_AGENTS_MAX_OPEN": "1000", "CALLBOARD_AGENTS_REPORTS": "wait"}
_GIVEN = 6
"""Tasks for which every process wants to start an agent."""
_MESSAGES = 16


def _groups(host: Host) -> Groups:
    service = host.services["groups"]
    assert isinstance(service, Groups)
    return service


def _agents(host: Host) -> Agents:
    service = host.services["agents"]
    assert isinstance(service, Agents)
    return service


def _who(root: str, agent_id: str) -> Participant:
    by = Actor(kind="agent", id=agent_id)
    return Participant(root_id=SessionId(root), agent_id=SessionId(agent_id), by=by)


async def _set_up(folder: Path, model: str, *, claimers: int, tasks: int) -> dict[str, Any]:
    """A root, its agents at rest, tasks that all are ready, and messages that wait for one of them."""
    async with host_in(folder, model=model, environ=_MANY) as host:
        root = await new_session(host, folder)
        caller = Caller(parent_id=root, by=CLIENT)
        made = [
            (await _agents(host).spawn(caller, Wanted(name=f"agent {n}", message="work"))).agent_id
            for n in range(claimers + 1)
        ]
        for agent_id in made:
            await idle(host, agent_id)
        reader, *agents = map(str, made)
        groups, who = _groups(host), _who(root, root)
        ids = [
            (await groups.create(who, NewTask(title=f"task {n}"))).task_id
            for n in range(tasks + _GIVEN)
        ]
        member = _who(root, reader)
        await host.log.transact(lambda tx: join(tx, member, the_group(tx, member), member.agent_id))
        for number in range(_MESSAGES):
            await groups.send(who, "agent", reader, f"message {number}")
    return {
        "root": root, "reader": reader, "agents": agents, "tasks": ids[:tasks], "given": ids[tasks:]
    }  # fmt: skip


@contextmanager
def _racing(folder: Path, model: str, board: dict[str, Any], share: list[str]) -> Generator[Any]:
    """A process with some of the agents, as soon as it is ready."""
    process = subprocess.Popen(
        [sys.executable, str(_PROGRAM), str(folder), model],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
    )
    try:
        _say(process, json.dumps({**board, "agents": share}))
        yield process
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def _say(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def _race(folder: Path, model: str, board: dict[str, Any], processes: int) -> list[dict[str, Any]]:
    """What each process says came of it."""
    with ExitStack() as stack:
        racers = [
            stack.enter_context(_racing(folder, model, board, board["agents"][n::processes]))
            for n in range(processes)
        ]
        for racer in racers:
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            _say(racer, "")
        told = [json.loads(racer.stdout.readline()) for racer in racers]
        for racer in racers:
            _say(racer, "")
        return told


async def _race_and_check(folder: Path, *, claimers: int, processes: int, tasks: int) -> None:
    model = scenario(folder, "default: [{say: Yes.}]")
    board = await _set_up(folder, model, claimers=claimers, tasks=tasks)
    told = await asyncio.to_thread(_race, folder, model, board, processes)

    won = Counter(
        task for each in told for mine in each["won"].values() for task in mine
    )  # fmt: skip
    assert won == Counter(board["tasks"]), "each task is won once"
    owners = {
        task: agent for each in told for agent, mine in each["won"].items() for task in mine
    }  # fmt: skip
    lost = [(task, owner) for each in told for task, owner in each["lost"]]
    assert len(lost) == (claimers - 1) * tasks
    assert {owners[task] == owner for task, owner in lost} == {True}, "losers see the one winner"
    spawned = [(task, agent) for each in told for task, agent in each["spawned"].items()]
    assert sorted(task for task, _ in spawned) == sorted(board["given"])
    owners.update(spawned)

    async with host_in(folder, model=model, environ=_MANY) as host:
        root = board["root"]
        claims = [
            (record.value.task_id, record.value.agent_id)
            for record in await log_of(host, root)
            if record.type == "group_task_claimed"
        ]
        assert len(claims) == len(owners)
        assert dict(claims) == owners, "one event each"
        listed = (await _groups(host).reading.tasks(root, "all")).tasks
        assert {t.task_id: t.assignee for t in listed} == owners
        await _check_agents(host, root, claimers=claimers)
        await _check_read_once(host, board["reader"])
        await _check_rebuilt(host, root)


async def _check_agents(host: Host, root: str, *, claimers: int) -> None:
    """Who has lost the race for a task has left no agent behind (coordination 97, 98)."""
    tree = await _agents(host).reading.list(root)
    assert len(tree) == claimers + 1 + _GIVEN


async def _check_read_once(host: Host, reader: str) -> None:
    await idle(host, reader)
    log = await log_of(host, reader)
    assert sum(r.type == "group_message_delivered" for r in log) == _MESSAGES
    texts = [
        r.value.text.split("\n")[1]
        for r in log
        if r.type == "directive" and r.value.text.startswith("<group-message")
    ]
    assert texts == [f"message {n}" for n in range(_MESSAGES)]


async def _check_rebuilt(host: Host, root: str) -> None:
    async def rows() -> dict[str, list[Any]]:
        return {
            name: sorted(await host.log.query(f"SELECT * FROM {name}"), key=repr)
            for name in PROJECTION.tables
        }

    kept = await rows()
    await host.log.rebuild()
    assert await rows() == kept
    state = replay(((r.value, r.at) for r in await log_of(host, root)), SessionId(root))
    assert state is not None
    assert {t.task_id: t.assignee for t in state.tasks.values()} == {
        t.task_id: t.assignee for t in (await _groups(host).reading.tasks(root, "all")).tasks
    }


async def test_coordination_82_98_99_eight_claimers_in_four_processes(tmp_path: Path) -> None:
    await _race_and_check(tmp_path, claimers=8, processes=4, tasks=40)


async def test_coordination_82_98_99_thirty_two_claimers_in_eight_processes(tmp_path: Path) -> None:
    await _race_and_check(tmp_path, claimers=32, processes=8, tasks=200)
