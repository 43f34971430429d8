"""specs/execution.md 5 and 41: what is read of a session is whole, never changes, and is current."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from turns_kit import speaks, stage

from callboard.host import Host
from callboard.sessions.cache import SessionCache
from callboard_rpc.common import UNSET
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, host_in, new_session

pytestmark = pytest.mark.anyio


async def _change(host: Host, session_id: str, **changes: Any) -> None:
    given = {"title": UNSET, "pinned": UNSET, "metadata": UNSET, "mode": UNSET, "model": UNSET}
    await host.sessions.update(session_id, by=CLIENT, **{**given, **changes})


async def test_execution_41_a_miss_is_none_and_reads_nothing(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        cache = SessionCache(host.log)
        reads: list[str] = []
        query = host.log.query

        async def counted(sql: str, *params: Any) -> Any:
            reads.append(sql)
            return await query(sql, *params)

        host.log.query = counted  # type: ignore[method-assign]
        assert cache.read(session_id) is None
        assert cache.read("ses_nothing") is None
        assert reads == []
        assert (await cache.state(session_id)).session_id == session_id
        assert len(reads) == 1
        assert cache.read(session_id) == await cache.state(session_id)
        assert len(reads) == 1


async def test_execution_41_a_held_snapshot_never_changes_and_reads_are_consistent(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        held = host.cache.read(session_id)
        assert held is not None
        before = repr(held)
        done = asyncio.Event()

        async def write() -> None:
            for n in range(100):
                await _change(host, session_id, title=f"title {n}", pinned=bool(n % 2))
            done.set()

        writing = asyncio.ensure_future(write())
        reads = 0
        while not done.is_set() or reads < 1000:
            seen = host.cache.read(session_id)
            assert seen is not None
            if seen.title is not None:
                assert seen.pinned == bool(int(seen.title.split()[1]) % 2)
            reads += 1
            if reads % 10 == 0:
                await asyncio.sleep(0)
        await writing
        assert repr(held) == before


@pytest.mark.parametrize("what", ["state", "transcript"])
async def test_what_is_committed_while_a_session_is_loaded_is_not_missed(
    tmp_path: Path, what: str
) -> None:
    """A mode that is narrowed at the wrong moment must not be judged by the old one."""
    async with stage(tmp_path, speaks("hello")) as on:
        session_id, _ = await on.turn()
        host = on.host
        cache = SessionCache(host.log)
        query = host.log.query

        async def slow(sql: str, *params: Any) -> Any:
            rows = await query(sql, *params)
            host.log.query = query  # type: ignore[method-assign]
            await _change(host, session_id, mode="ask")
            return rows

        host.log.query = slow  # type: ignore[method-assign]
        if what == "state":
            assert (await cache.state(session_id)).mode == "ask"
            assert cache.read(session_id) == await cache.state(session_id)
        else:
            head = (await host.reading.session(session_id)).head_seq
            assert (await cache.transcript(session_id)).seq == head + 1


async def test_a_session_that_is_deleted_while_it_is_loaded_is_not_found(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        cache = SessionCache(host.log)
        query = host.log.query

        async def slow(sql: str, *params: Any) -> Any:
            rows = await query(sql, *params)
            host.log.query = query  # type: ignore[method-assign]
            await host.sessions.delete(session_id, by=CLIENT)
            return rows

        host.log.query = slow  # type: ignore[method-assign]
        with pytest.raises(CallboardError) as gone:
            await cache.state(session_id)
        assert gone.value.kind == "sessionNotFound"
        assert cache.read(session_id) is None


async def test_loads_at_the_same_time_are_all_current(tmp_path: Path) -> None:
    async with stage(tmp_path, speaks("hello")) as on:
        session_id, _ = await on.turn()
        cache = SessionCache(on.host.log)
        for n in range(20):
            loads = [asyncio.ensure_future(cache.transcript(session_id)) for _ in range(3)]
            await _change(on.host, session_id, title=f"title {n}")
            loads.append(asyncio.ensure_future(cache.transcript(session_id)))
            await asyncio.gather(*loads)
            head = (await on.host.reading.session(session_id)).head_seq
            assert (await cache.transcript(session_id)).seq == head
            cache.forget(session_id)


async def test_a_cancel_while_large_values_are_fetched_loses_none_of_them(tmp_path: Path) -> None:
    long = "y" * 200_000
    async with stage(tmp_path, speaks(long)) as on:
        session_id, _ = await on.turn()
        cache = SessionCache(on.host.log)
        fetching = asyncio.Event()
        whole = on.host.log.whole

        async def stuck(record: Any) -> Any:
            fetching.set()
            await asyncio.Event().wait()

        on.host.log.whole = stuck  # type: ignore[method-assign]
        task = asyncio.ensure_future(cache.transcript(session_id))
        await fetching.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        on.host.log.whole = whole  # type: ignore[method-assign]
        transcript = await cache.transcript(session_id)
        assert long in str(transcript.messages("replay"))
