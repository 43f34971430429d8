"""The writer among others: fair turns between processes, a bounded WAL."""

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from log_workbench import AGENT, CLIENT, log_at, returned, said, session_in

from callboard.log.lockfile import TurnLock
from callboard.log.transaction import Transaction

pytestmark = pytest.mark.anyio

_MIB = 1024 * 1024


def _two_hundred(tx: Transaction) -> None:
    for _ in range(200):
        tx.append("ses_a", said("x" * 200), actor=CLIENT)


def _wal(store_path: Path) -> int:
    return store_path.with_name(store_path.name + "-wal").stat().st_size


async def test_interrupts_69_the_wal_stays_bounded_over_20000_appends(store_path: Path) -> None:
    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        largest = 0
        for _ in range(100):
            await log.transact(_two_hundred)
            largest = max(largest, _wal(store_path))
        assert (await log.session("ses_a", after_seq=20_000))[-1].seq == 20_001
        assert largest < 16 * _MIB
        assert store_path.stat().st_size > 5 * _MIB  # it was brought over, not piled up


async def test_interrupts_69_the_wal_stays_bounded_over_large_values(store_path: Path) -> None:
    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        largest = 0
        for n in range(60):
            text = f"{n} " * (_MIB // 4)
            await log.append("ses_a", returned(f"c{n}", text), actor=AGENT)
            largest = max(largest, _wal(store_path))
        assert store_path.stat().st_size > 40 * _MIB
        assert largest < 16 * _MIB


async def test_a_reader_that_stays_does_not_keep_the_wal_from_being_used_again(
    store_path: Path,
) -> None:
    async with log_at(store_path, projections=()) as log, log_at(store_path) as other:
        await session_in(log)
        for n in range(40):
            await log.append("ses_a", returned(f"c{n}", f"{n} " * (_MIB // 4)), actor=AGENT)
            assert (await other.session("ses_a"))[-1].seq == n + 2  # reads between all writes
        assert _wal(store_path) < 32 * _MIB


_TAKER = """
import os, sys, threading, time
from pathlib import Path
from callboard.log.lockfile import TurnLock

folder, name = Path(sys.argv[1]), sys.argv[2].encode()
lock = TurnLock(folder)
turns = os.open(folder / "turns", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
print("ready", flush=True)
sys.stdin.readline()
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), over.set()), daemon=True).start()
while not over.is_set():
    with lock.held():
        os.write(turns, name)
        ends = time.perf_counter() + 0.0005
        while time.perf_counter() < ends:
            pass
"""


async def test_limits_3_2_three_processes_take_turns_and_none_starves(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _TAKER, tmp_path, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "xyz"
    ]

    def tell(word: str) -> None:
        for child in children:
            assert child.stdin is not None
            child.stdin.write(f"{word}\n")
            child.stdin.flush()

    turns = tmp_path / "turns"
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        tell("go")
        while min(Counter(turns.read_text()).get(name, 0) for name in "xyz") < 100:
            await asyncio.sleep(0.01)
        tell("stop")
        for child in children:
            assert child.wait(60) == 0
    finally:
        for child in children:
            child.kill()
            child.wait()
    order = turns.read_text()
    together = order[max(order.index(name) for name in "xyz") :]
    taken = Counter(together)
    # SQLite's own waiting gave one process 1 commit and another 10,144 in the same time
    assert max(taken.values()) <= 4 * min(taken.values())


async def test_the_lock_of_a_dead_process_is_free(tmp_path: Path) -> None:
    holds = (
        "import sys, time\nfrom pathlib import Path\nfrom callboard.log.lockfile import TurnLock\n"
        "with TurnLock(Path(sys.argv[1])).held():\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", holds, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    lock = TurnLock(tmp_path)

    def take() -> bool:
        with lock.held():
            return True

    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        waiting = asyncio.ensure_future(asyncio.to_thread(take))
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not done
        child.kill()
        assert await waiting
    finally:
        child.kill()
        child.wait()
        lock.close()


async def test_threads_with_a_lock_each_exclude_one_another(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        lock = TurnLock(tmp_path)
        for _ in range(50):
            with lock.held():
                inside.append(1)
                most.append(len(inside))
                inside.pop()
        lock.close()

    await asyncio.gather(*(asyncio.to_thread(work) for _ in range(4)))
    assert len(most) == 200
    assert max(most) == 1
