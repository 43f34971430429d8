"""When a host looks at the others: at once when one has died, and seldom when nothing happens."""

import os
import subprocess
import sys

import anyio
import pytest

from callboard.log.bell import Bell
from callboard.log.lockfile import TurnLock
from callboard.sessions import vigil as watching
from callboard.sessions.identity import identity
from callboard.sessions.vigil import Vigil

pytestmark = pytest.mark.anyio


class Store:
    """Tells when it is asked whether something was committed."""

    def __init__(self) -> None:
        self.version = 1
        self.asked = anyio.Event()

    def __call__(self) -> int:
        self.asked.set()
        return self.version


@pytest.fixture
def other():
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def lock(tmp_path):
    lock = TurnLock(tmp_path)
    yield lock
    lock.close()


@pytest.fixture
def door(lock):
    return lambda heard: Bell(lock.door, heard, breath_s=0)


@pytest.fixture
async def vigil(clock, door, monkeypatch):
    monkeypatch.setattr(watching, "_GLANCE_S", 0.01)
    monkeypatch.setattr(watching, "_LOOK_S", 0.01)
    store = Store()
    vigil = Vigil(store, door, clock=lambda: clock[0])
    vigil.store = store
    await vigil.due()  # what was committed before
    yield vigil
    vigil.close()


async def _still_waits(vigil: Vigil, scope: anyio.CancelScope) -> None:
    """Cancels the wait once it has asked twice and found nothing."""
    for _ in range(2):
        vigil.store.asked = anyio.Event()
        await vigil.store.asked.wait()
    scope.cancel()


async def _is_not_due(vigil: Vigil) -> bool:
    async with anyio.create_task_group() as group:
        group.start_soon(_still_waits, vigil, group.cancel_scope)
        await vigil.due()
        return False
    return True


async def test_a_death_is_told_by_the_kernel(other, door, monkeypatch):
    if sys.platform == "linux":  # elsewhere it is looked for
        monkeypatch.setattr(watching, "_GLANCE_S", 3_600)
    vigil = Vigil(lambda: 1, door, clock=lambda: 0.0)
    told = identity(other.pid)
    assert vigil.life(other.pid, told) == vigil.life(other.pid, told) == "alive"
    other.kill()
    await vigil.due()
    assert vigil.life(other.pid, told) == "gone"
    vigil.close()


async def test_nothing_is_due_while_nothing_happens(vigil, other):
    if sys.platform == "linux":
        vigil.life(other.pid, identity(other.pid))
        assert await _is_not_due(vigil)
    vigil.store.version = 2
    await vigil.due()


async def test_a_look_is_due_now_and_then(vigil, clock):
    assert await _is_not_due(vigil)
    clock[0] = 2.0
    await vigil.due()
    assert await _is_not_due(vigil)


async def test_where_deaths_are_not_told_each_look_is_due(vigil, other, monkeypatch):
    def refused(_: int) -> int:
        raise OSError

    monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
    told = identity(other.pid)
    assert vigil.life(other.pid, told) == "alive"
    await vigil.due()
    await vigil.due()
    other.kill()
    other.wait()
    assert vigil.life(other.pid, told) == "gone"
    assert await _is_not_due(vigil)


async def test_a_pid_that_is_another_process_s_by_now_is_gone(vigil, other):
    realm = identity(other.pid).rpartition("@")[0]
    assert vigil.life(other.pid, f"{realm}@1") == "gone"
    assert vigil.life(other.pid, "elsewhere@1") == "unknown"


async def test_a_host_that_comes_is_looked_at_when_it_knocks(vigil, lock):
    if sys.platform == "linux":
        async with anyio.create_task_group() as group:
            group.start_soon(vigil.due)
            await vigil.store.asked.wait()
            lock.knock()
    lock.ring()
    assert await _is_not_due(vigil), "what rings is an event, and heard elsewhere"
