"""specs/execution.md 34, 36-38 over kill -9 and several processes: a delivery is in the history once,
or waits; what was not activated stays inert; one that kills its server is not tried for ever."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from inbox_child import CHILD, envelope

from callboard.host import Host
from callboard.sessions.inbox.state import Coalesced
from harness.inside import host_in, idle, log_of, new_session

pytestmark = pytest.mark.anyio

PATIENCE_S = 60.0
SCRIPT = Path(__file__).with_name("inbox_child.py")


class Killed(Exception):
    """The process is gone."""


class Child:
    """The other process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def heard(self) -> Any:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE_S)
        if not line:
            raise Killed
        return orjson.loads(line)

    async def do(self, *what: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(orjson.dumps(what) + b"\n")
        return await self.heard()

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def child(folder: Path, session_id: str, fault: str = "") -> AsyncGenerator[Child]:
    """The process, when its host is open. With a `fault`, it ends there, by SIGKILL and no other way."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        SCRIPT,
        folder,
        session_id,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": str(SCRIPT.parents[1]),
            **({"CALLBOARD_FAULT": fault} if fault else {}),
        },
    )
    try:
        one = Child(process)
        if not fault:
            assert await one.heard() == "here"
        yield one
    finally:
        if process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            _, said = await asyncio.wait_for(process.communicate(), PATIENCE_S)
            assert b"Traceback" not in said, said.decode()


async def killed_at(folder: Path, session_id: str, fault: str, *commands: Any) -> None:
    async with child(folder, session_id, fault) as one:
        with pytest.raises((Killed, BrokenPipeError, ConnectionResetError)):
            assert await one.heard() == "here"
            for command in commands:
                await one.do(*command)
        assert await asyncio.wait_for(one.process.wait(), PATIENCE_S) == -9
        assert one.process.stderr is not None
        assert f"killed at {fault}".encode() in await one.process.stderr.read()


async def session_in(folder: Path) -> str:
    async with host_in(folder) as host:
        return await new_session(host, folder)


async def history(host: Host, session_id: str) -> list[str]:
    """The deliveries in the history. Every seq is there, every turn has ended once, every delivery was
    admitted by the turn that wrote it."""
    records = await log_of(host, session_id)
    assert [r.seq for r in records] == list(range(1, len(records) + 1))
    begun = Counter(r.turn_id for r in records if r.type == "turn_started")
    ended = Counter(r.turn_id for r in records if r.type == "turn_finished")
    assert begun == ended
    assert set(begun.values()) <= {1}
    admitted = {s: r.turn_id for r in records if r.type == "ack" for s in r.value.admits}
    delivered = [r for r in records if r.type == "message" and r.value.delivered is not None]
    assert [admitted[r.seq] for r in delivered] == [r.turn_id for r in delivered]
    return [r.value.content[0].text for r in delivered]


async def count(host: Host, kind: str) -> int:
    return (await host.log.query("SELECT count(*) FROM events WHERE type = ?", kind))[0][0]


async def waits(host: Host) -> int:
    return (await host.log.query("SELECT count(*) FROM inbox"))[0][0]


@pytest.mark.parametrize(
    ("fault", "turns"),
    [
        ("inbox.send.deciding", 0),
        ("inbox.send.committed", 1),
        ("turns.reserve.deciding", 1),
        ("turns.reserve.committed", 2),
        ("turns.reserve.told", 2),
        ("turns.boundary.deciding", 2),
        ("turns.boundary.committed", 1),
    ],
)
async def test_execution_36_killed_anywhere_around_an_admission_there_is_one_message(
    tmp_path: Path, fault: str, turns: int
) -> None:
    session_id = await session_in(tmp_path)
    await killed_at(tmp_path, session_id, fault, ("send", "news"), ("idle",))
    async with host_in(tmp_path) as host:
        await idle(host, session_id)
        # what was committed is taken in without its producer; by a turn of its own, or by the one that
        # was interrupted with it
        assert await history(host, session_id) == (["news"] if turns else [])
        assert await count(host, "turn_started") == turns
        assert await waits(host) == 0
        # and the producer, who cannot know, sends again
        await host.inbox.send(session_id, envelope("news"), by=CHILD)
        await idle(host, session_id)
        assert await history(host, session_id) == ["news"]
        assert await count(host, "turn_started") == max(turns, 1)
    async with host_in(tmp_path) as host:
        await idle(host, session_id)
        assert await history(host, session_id) == ["news"]


async def test_execution_34_what_is_inert_is_inert_after_a_kill_and_a_restart(
    tmp_path: Path,
) -> None:
    session_id = await session_in(tmp_path)
    async with child(tmp_path, session_id) as one:
        assert await one.do("deliver", "inert") == 1
        await one.kill()
    for _ in range(2):
        async with host_in(tmp_path) as host:
            await host.dispatcher.wake_waiting()
            await idle(host, session_id)
            assert await count(host, "turn_started") == 0
            assert await waits(host) == 1
    async with child(tmp_path, session_id) as one:
        assert await one.do("activate", 1) == "Started"
        assert await one.do("idle") == "idle"
    async with host_in(tmp_path) as host:
        assert await history(host, session_id) == ["inert"]


async def test_execution_38_a_delivery_that_kills_its_server_is_set_aside_after_three_tries(
    tmp_path: Path,
) -> None:
    session_id = await session_in(tmp_path)
    fault = "turns.boundary.deciding"
    await killed_at(tmp_path, session_id, fault, ("send", "poison"), ("idle",))
    for _ in range(2):  # by themselves: recovery tries it again
        await killed_at(tmp_path, session_id, fault, ("idle",))
    async with child(tmp_path, session_id, fault) as one:
        assert await one.heard() == "here"
        assert await one.do("idle") == "idle"  # and lives
    async with host_in(tmp_path) as host:
        await idle(host, session_id)
        assert await history(host, session_id) == []
        assert await waits(host) == 0
        assert await count(host, "turn_started") == 3
        assert await count(host, "deliveries_dropped") == 1


async def test_what_is_delivered_in_one_process_is_taken_in_by_the_turn_of_another(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        async with child(tmp_path, session_id) as one:
            assert await one.do("send", "first") == "Started"  # who asks runs it
            assert await one.do("idle") == "idle"
            assert await history(host, session_id) == ["first"]
            hold = await host.reservations.prepare(session_id)
            assert await one.do("send", "second") == "Coalesced"
            assert await one.do("deliver", "third") == 3
            await hold.abandon()
            # the one who asked runs it, though nothing tells it of the end of a hold
            assert await one.do("idle") == "idle"
            assert await history(host, session_id) == ["first", "second"]
            assert (
                await host.inbox.activate(session_id, 3) != Coalesced()
            )  # delivered there, run here
            await idle(host, session_id)
            assert await history(host, session_id) == ["first", "second", "third"]
            owners = await host.log.query(
                "SELECT json_extract(data, '$.hostId') = ? FROM events WHERE type = 'turn_started'",
                host.host_id,
            )
            assert owners == [(0,), (0,), (1,)]


async def test_what_a_process_asked_for_and_did_not_live_to_run_another_runs(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        async with child(tmp_path, session_id) as one:
            hold = await host.reservations.prepare(session_id)
            assert await one.do("send", "orphan") == "Coalesced"
            await one.kill()
            await hold.abandon()
        async with asyncio.timeout(PATIENCE_S):
            await idle(host, session_id)  # while it is asked for, the session is not idle
        assert await history(host, session_id) == ["orphan"]
