"""The WAL is as long as the configuration lets it be, whoever has left it."""

from itertools import pairwise
from pathlib import Path

import pytest
from log_workbench import AGENT, CLIENT, called, returned, said, session_in

from callboard.log import search
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.store import open_store
from callboard.log.transaction import Transaction
from callboard.log.writer import WalLimits

pytestmark = pytest.mark.anyio

_KIB = 1024


def _log(path: Path, limits: WalLimits | None = None) -> Log:
    ids = IdSource()
    return Log(open_store(path, ids=ids, now=utc_now), ids=ids, now=utc_now, wal=limits)


def _wal(path: Path) -> int:
    return path.with_name(path.name + "-wal").stat().st_size


async def test_interrupts_69_checkpoints_come_as_often_as_the_configuration_says(
    store_path: Path,
) -> None:
    async with _log(store_path, WalLimits(checkpoint_bytes=64 * _KIB)) as log:
        await session_in(log)
        for n in range(60):
            await log.append("ses_a", called(f"c{n}", text="x" * 30_000), actor=AGENT)
        assert _wal(store_path) < 1024 * _KIB
        assert store_path.stat().st_size > 1024 * _KIB


async def test_interrupts_69_a_long_wal_that_was_left_is_cut_back_with_the_first_commit(
    store_path: Path,
) -> None:
    loose = WalLimits(checkpoint_bytes=1 << 40, limit_bytes=1 << 40)
    async with _log(store_path, loose) as busy:
        await session_in(busy)
        for n in range(40):
            await busy.append("ses_a", called(f"c{n}", text="x" * 30_000), actor=AGENT)
        assert _wal(store_path) > 1024 * _KIB  # as a process that is killed just then leaves it
        async with _log(store_path, WalLimits(limit_bytes=512 * _KIB)) as log:
            await log.append("ses_a", said("the first"), actor=CLIENT)
            assert (await log.query("SELECT count(*) FROM events")) == [(42,)]
            assert _wal(store_path) < 128 * _KIB


async def test_interrupts_69_much_text_is_indexed_in_pieces(store_path: Path) -> None:
    async with _log(store_path, WalLimits(checkpoint_bytes=64 * _KIB)) as log:
        await session_in(log)

        def say_much(tx: Transaction) -> list[int]:
            for n in range(100):
                tx.append("ses_a", returned(f"c{n}", f"w{n} " + "filler " * 6_000), actor=AGENT)
            pieces: list[int] = []
            while search.index_batch(tx):
                pieces.append(tx.value("SELECT through FROM search_progress"))
            return pieces

        pieces = await log.transact(say_much)
        assert len(pieces) >= 3
        assert all(later - earlier < 50 for earlier, later in pairwise([0, *pieces]))
        assert await log.index_all() == 101
        for n in (0, 50, 99):
            assert [hit.record.seq for hit in await log.search(f"w{n}", limit=5)] == [n + 2]
