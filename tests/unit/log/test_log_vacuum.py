"""A vacuum: what is of no use goes, what is of use stays, and the file gets smaller."""

import asyncio
import stat
from pathlib import Path

import pytest
from log_care_kit import alter, contents, fill, look, store_id
from log_workbench import CLIENT, log_at, said

from callboard.log import vacuuming
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.store import Store, open_store
from callboard_rpc.errors import CallboardError

pytestmark = pytest.mark.anyio


def _vacuum(path: Path, *, days: int = 7) -> vacuuming.Vacuumed:
    return vacuuming.vacuum(path, now=utc_now, ids=IdSource(), keep_answers_days=days)


async def test_space_is_given_back_and_everything_of_use_is_kept(store_path: Path) -> None:
    await fill(store_path, sessions=12)
    async with log_at(store_path) as log:
        for number in range(1, 12):
            await log.transact(
                lambda tx, number=number: tx.delete_session(f"ses_{number}", actor=CLIENT)
            )
        await log.index_all()
    before, identity = contents(store_path), store_id(store_path)
    done = _vacuum(store_path)
    assert done.bytes_after < done.bytes_before / 3
    assert contents(store_path) == before
    assert store_id(store_path) == identity  # cursors stay good
    assert stat.S_IMODE(store_path.stat().st_mode) == 0o600
    assert look(store_path).findings == ()
    assert sorted(p.name for p in store_path.parent.iterdir()) == [
        "callboard.db",
        "callboard.db.locks",
    ]
    async with log_at(store_path) as log:
        record = await log.append("ses_0", said("goes on"), actor=CLIENT)
        assert record.pos == 12 * 5 + 11 + 1  # positions are never given twice
        assert len(await log.search("precious", limit=5)) == 1


async def test_only_what_is_of_no_use_goes(store_path: Path) -> None:
    await fill(store_path)
    alter(
        store_path,
        "INSERT INTO blobs VALUES ('blob_x', 'text/plain', 1, x'00')",
        "INSERT INTO idempotency VALUES ('m', 's', 'old', 'd', 'a', '2001-01-01T00:00:00.000Z')",
        "INSERT INTO idempotency VALUES ('m', 's', 'new', 'd', 'a', '2999-01-01T00:00:00.000Z')",
        "INSERT INTO drafts VALUES ('trn_gone', 'ses_0', 'msg', 'x', '', '0', 'now')",
        "INSERT INTO drafts VALUES ('trn_runs', 'ses_0', 'msg', 'x', '', '0', 'now')",
        "INSERT INTO turns (turn_id, session_id, idx, state, trigger, started_at) "
        "VALUES ('trn_runs', 'ses_0', 0, 'running', '{}', 'now')",
    )
    done = _vacuum(store_path)
    assert (done.blobs, done.answers, done.drafts) == (1, 1, 1)
    kept = dict(contents(store_path))
    assert [row[2] for row in kept["idempotency"]] == ["new"]
    assert [row[0] for row in kept["drafts"]] == ["trn_runs"]
    assert len(kept["blobs"]) == 3


async def test_it_is_refused_while_anybody_has_the_store_open(store_path: Path) -> None:
    await fill(store_path)
    async with log_at(store_path) as log:
        with pytest.raises(CallboardError, match="in use") as refused:
            _vacuum(store_path)
        assert refused.value.kind == "storeBusy"
        await log.append("ses_0", said("goes on"), actor=CLIENT)


async def test_who_opens_the_store_meanwhile_waits_for_its_end(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store_path)
    take_place = vacuuming._take_place  # pyright: ignore[reportPrivateUsage]
    opening: list[asyncio.Task[Store]] = []
    loop = asyncio.get_running_loop()

    def in_between(path: Path) -> None:
        started = asyncio.Event()

        def open_now() -> Store:
            loop.call_soon_threadsafe(started.set)
            return open_store(path, ids=IdSource(), now=utc_now)

        async def begin() -> None:
            opening.append(asyncio.create_task(asyncio.to_thread(open_now)))
            await started.wait()

        asyncio.run_coroutine_threadsafe(begin(), loop).result(30)
        take_place(path)

    monkeypatch.setattr(vacuuming, "_take_place", in_between)
    await asyncio.to_thread(_vacuum, store_path)
    opened = await opening[0]
    opened.must_be_in_place()
    opened.close()


async def test_a_damaged_store_is_left_as_it_is(store_path: Path) -> None:
    await fill(store_path, sessions=4)
    data = bytearray(store_path.read_bytes())
    data[20 * 4096 : 21 * 4096] = b"\xa5" * 4096
    store_path.write_bytes(bytes(data))
    with pytest.raises(CallboardError) as refused:
        _vacuum(store_path)
    assert refused.value.kind == "storeCorrupt"
    assert "callboard store" in refused.value.message
    assert not store_path.with_name("callboard.db.incoming").exists()


async def test_there_is_nothing_to_make_smaller_where_there_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(CallboardError) as refused:
        _vacuum(tmp_path / "s.db")
    assert refused.value.kind == "pathNotFound"
    assert list(tmp_path.iterdir()) == []
