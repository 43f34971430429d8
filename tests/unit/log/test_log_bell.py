"""Hearing of other processes' commits without looking for them all the time."""

import os
import sys
from pathlib import Path

import anyio
import pytest
from log_workbench import CLIENT, log_at, said, session_in

from callboard.log.bell import Bell

pytestmark = pytest.mark.anyio
on_linux = sys.platform.startswith("linux")


async def test_a_write_is_heard_and_what_follows_at_once_is_told_once(tmp_path: Path) -> None:
    place = tmp_path / "bell"
    place.touch()
    told = anyio.Event()
    times = 0

    def rung() -> None:
        nonlocal times
        times += 1
        told.set()

    bell = Bell(place, rung, breath_s=3_600)
    assert bell.listen() is on_linux
    assert bell.listen() is on_linux, "twice is once"
    if on_linux:
        descriptor = os.open(place, os.O_WRONLY)
        os.pwrite(descriptor, b"\0", 0)
        await told.wait()
        os.pwrite(descriptor, b"\0", 0)
        for _ in range(20):
            await anyio.sleep(0)
        assert times == 1
        os.close(descriptor)
    bell.stop()
    bell.stop()
    assert not bell.listening


async def test_a_commit_elsewhere_is_heard_without_a_poll(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if on_linux:
        monkeypatch.setattr("callboard.log.feed._SELDOM_S", 3_600)
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        for text in ("one", "two", "three"):
            # nobody follows in between, so the bell may have been put down
            await there.append("ses_a", said("unheard"), actor=CLIENT)
            with here.feed.followed():
                record = await there.append("ses_a", said(text), actor=CLIENT)
                assert await here.moved(record.pos - 1) == record.pos


async def test_where_no_bell_is_heard_commits_elsewhere_are_still_found(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.log.bell._watch", lambda _: None)
    monkeypatch.setattr("callboard.log.feed._SELDOM_S", 3_600)
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        with here.feed.followed():
            record = await there.append("ses_a", said("from there"), actor=CLIENT)
            assert await here.moved(record.pos - 1) == record.pos


async def test_a_bell_that_nobody_rang_is_not_needed(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.log.feed._SELDOM_S", 0.05)
    monkeypatch.setattr("callboard.log.lockfile.TurnLock.ring", lambda _: None)
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        with here.feed.followed():
            record = await there.append("ses_a", said("and died"), actor=CLIENT)
            assert await here.moved(record.pos - 1) == record.pos
