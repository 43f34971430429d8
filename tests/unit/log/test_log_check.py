"""`callboard store check`: whatever no Callboard would write is found, and only what the log tells is
made anew."""

import hashlib
import os
import stat
from pathlib import Path

import pytest
from log_care_kit import alter, contents, fill, look, mend, parts
from log_workbench import CLIENT, begin, log_at, said, session_in

from callboard.log import carebook
from callboard.log.examining import Finding
from callboard.log.store import migrations
from callboard_rpc.common import TextContent
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import PromptUpdated

pytestmark = pytest.mark.anyio


async def test_a_store_in_order_has_nothing_to_find_and_is_left_as_it_is(store_path: Path) -> None:
    await fill(store_path)
    before = store_path.read_bytes()
    report = look(store_path)
    assert report.findings == ()
    assert (report.sessions, report.events, report.head) == (2, 10, 10)
    assert report.blobs == 3  # two large texts, and one attachment that both share
    assert report.version == len(migrations())
    assert store_path.read_bytes() == before
    assert sorted(p.name for p in store_path.parent.iterdir()) == [
        "callboard.db",
        "callboard.db.locks",
    ]


async def test_a_store_is_looked_through_while_it_is_in_use(store_path: Path) -> None:
    await fill(store_path)
    async with log_at(store_path) as log:
        await log.append("ses_0", said("uncheckpointed"), actor=CLIENT)
        report = look(store_path)
        assert report.findings == ()
        assert report.events == 11
        await log.append("ses_0", said("goes on"), actor=CLIENT)
        assert look(store_path).events == 12


async def test_a_prompt_that_was_changed_is_no_fault_of_the_search_index(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log, "ses_0")
        await log.append("ses_0", said("first words"), actor=CLIENT)
        changed = PromptUpdated(seq=2, content=(TextContent(text="other words"),))
        await log.append("ses_0", changed, actor=CLIENT)
        await log.index_all()
    assert look(store_path).findings == ()
    alter(store_path, "DELETE FROM search WHERE rowid = 3")
    assert parts(look(store_path).findings) == ["search"]
    assert mend(store_path).findings == ()


async def test_what_a_killed_process_left_in_the_wal_is_looked_at_and_stays_there(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    wal = store_path.with_name("callboard.db-wal")
    async with log_at(store_path) as log:
        await log.append("ses_0", said("in the wal"), actor=CLIENT)
        killed = tmp_path / "killed.db"
        for source, target in ((store_path, killed), (wal, tmp_path / "killed.db-wal")):
            target.write_bytes(source.read_bytes())
    before = (killed.read_bytes(), (tmp_path / "killed.db-wal").read_bytes())
    assert look(killed).events == 11
    assert (killed.read_bytes(), (tmp_path / "killed.db-wal").read_bytes()) == before


BLOB = "(SELECT blob_id FROM blobs WHERE size > 1000 LIMIT 1)"
_DAMAGE = {
    "a missing event": (["DELETE FROM events WHERE session_id = 'ses_0' AND seq = 2"], "log"),
    "a missing last event": (["DELETE FROM events WHERE session_id = 'ses_0' AND seq = 5"], "log"),
    "a missing first event": (["DELETE FROM events WHERE session_id = 'ses_0' AND seq = 1"], "log"),
    "a session without events": (["DELETE FROM events WHERE session_id = 'ses_0'"], "log"),
    "a head that lags": (["UPDATE heads SET seq = 4 WHERE session_id = 'ses_0'"], "log"),
    "a missing head": (["DELETE FROM heads WHERE session_id = 'ses_0'"], "log"),
    "data that is no JSON": (["UPDATE events SET data = '{' WHERE pos = 3"], "log"),
    "data that is no object": (["UPDATE events SET data = '[]' WHERE pos = 3"], "log"),
    "an actor that is no object": (["UPDATE events SET actor = '7' WHERE pos = 3"], "log"),
    "positions that come again": (["UPDATE sqlite_sequence SET seq = 2"], "log"),
    "a blob of other content": (
        [f"UPDATE blobs SET data = zeroblob(size) WHERE blob_id = {BLOB}"],
        "blobs",
    ),
    "a blob of another size": (["UPDATE blobs SET size = size + 1"], "blobs"),
    "a missing blob": (
        [
            f"DELETE FROM blob_refs WHERE blob_id = {BLOB}",
            "DELETE FROM blobs WHERE blob_id NOT IN (SELECT blob_id FROM blob_refs)",
        ],
        "blobs",
    ),
    "a blob that its session forgot": ([f"DELETE FROM blob_refs WHERE blob_id = {BLOB}"], "blobs"),
    "a reference to no blob": (["INSERT INTO blob_refs VALUES ('blob_x', 'ses_0')"], "file"),
    "a blob kept for no session": ([f"INSERT INTO blob_refs VALUES ({BLOB}, 'ses_x')"], "blobs"),
    "an index that is ahead": (["UPDATE search_progress SET through = 99"], "search"),
    "an index without a mark": (["DELETE FROM search_progress"], "search"),
    "an index without an entry": (["DELETE FROM search WHERE rowid = 2"], "search"),
    "an index with one too many": (["INSERT INTO search (rowid, text) VALUES (77, 'x')"], "search"),
    "an index with other words": (["UPDATE search SET text = 'other' WHERE rowid = 2"], "search"),
    "an index whose own tables are damaged": (["DELETE FROM search_data WHERE id > 10"], "search"),
    "another title": (["UPDATE sessions SET title = 'other'"], "projections"),
    "a missing row": (["DELETE FROM sessions WHERE session_id = 'ses_0'"], "projections"),
    "a row too many": (
        ["INSERT INTO open_calls VALUES ('c', 'ses_0', 't', 'n', 9, 'read')"],
        "projections",
    ),
    "an admitted trigger": (["UPDATE triggers SET state = 'admitted'"], "projections"),
}  # fmt: skip


@pytest.mark.parametrize("what", _DAMAGE)
async def test_each_damage_is_found_and_only_what_the_log_tells_is_mended(
    store_path: Path, what: str
) -> None:
    await fill(store_path)
    statements, part = _DAMAGE[what]
    alter(store_path, *statements)
    found = [each for each in look(store_path).problems if each.part == part]
    assert found, what
    if part in ("search", "projections"):
        assert all(each.repairable for each in look(store_path).problems)
        report = mend(store_path)
        assert report.repaired == (part,)
        assert report.findings == ()
        async with log_at(store_path) as log:
            assert [hit.record.seq for hit in await log.search("precious", limit=9)] == [2, 2]
    else:
        assert not any(each.repairable for each in found)
        before = contents(store_path)
        assert {each.part for each in mend(store_path).problems} >= {part}
        if part in ("log", "file"):
            assert contents(store_path) == before


async def test_blobs_of_nobody_are_a_note_and_go_when_asked(store_path: Path) -> None:
    await fill(store_path)
    data = "cast('stray' AS BLOB)"
    digest = hashlib.sha256(b"stray").hexdigest()
    alter(store_path, f"INSERT INTO blobs VALUES ('blob_{digest}', 'text/plain', 5, {data})")
    report = look(store_path)
    assert report.problems == ()
    assert [(f.part, f.severity, f.repairable) for f in report.findings] == [
        ("blobs", "note", True)
    ]
    assert "1 blob" in report.findings[0].message
    mended = mend(store_path)
    assert (mended.repaired, mended.findings, mended.blobs) == (("blobs",), (), 3)


async def test_a_page_that_is_damaged_is_found_and_nothing_is_mended(store_path: Path) -> None:
    await fill(store_path, sessions=12)
    data = bytearray(store_path.read_bytes())
    data[20 * 4096 : 21 * 4096] = b"\xa5" * 4096
    store_path.write_bytes(bytes(data))
    report = look(store_path)
    assert "file" in parts(report.problems)
    assert "file" in parts(mend(store_path).problems)
    assert store_path.read_bytes() == bytes(data)


async def test_a_store_whose_schema_is_damaged_is_a_finding_too(store_path: Path) -> None:
    await fill(store_path)
    data = bytearray(store_path.read_bytes())
    data[100:108] = b"\xff" * 8
    store_path.write_bytes(bytes(data))
    report = look(store_path)
    assert parts(report.problems) == ["file"]
    assert report.events == 0


async def test_a_table_that_is_missing_is_a_finding_too(store_path: Path) -> None:
    await fill(store_path)
    alter(store_path, "DROP TABLE search_progress")
    report = look(store_path)
    assert parts(report.problems) == ["file"]
    assert "search_progress" in report.problems[0].message


async def test_projections_that_an_old_event_cannot_take_are_told_by_position(
    store_path: Path,
) -> None:
    await fill(store_path)
    alter(
        store_path,
        "UPDATE events SET data = '{\"changes\": 3}', type = 'session_updated' WHERE pos = 2",
    )
    (found,) = [f for f in look(store_path).problems if f.part == "log"]
    assert "position 2" in found.message
    assert not found.repairable


async def test_what_higher_floors_find_is_told_as_well(store_path: Path) -> None:
    await fill(store_path)
    found = Finding(part="runs", message="a turn that nobody runs")
    report = look(store_path, examinations=(lambda rows: [found],))
    assert report.problems == (found,)


async def test_a_quick_look_leaves_out_what_takes_long(store_path: Path) -> None:
    await fill(store_path)
    alter(store_path, "UPDATE sessions SET title = 'other'")
    assert look(store_path, quick=True).findings == ()
    assert parts(look(store_path).problems) == ["projections"]
    alter(store_path, "UPDATE heads SET seq = 4 WHERE session_id = 'ses_0'")
    assert parts(look(store_path, quick=True).problems) == ["log"]


async def test_deleted_sessions_leave_nothing_to_find(store_path: Path) -> None:
    await fill(store_path)
    async with log_at(store_path) as log:
        await log.transact(lambda tx: tx.delete_session("ses_0", actor=CLIENT))
        await log.transact(lambda tx: begin(tx, "ses_b", root_id="ses_1"))
        await log.index_all()
    assert look(store_path).findings == ()


async def test_an_older_store_is_not_migrated_by_a_look(store_path: Path) -> None:
    await fill(store_path)
    alter(store_path, "PRAGMA user_version = 1")
    report = look(store_path)
    assert report.version == 1
    assert report.problems == ()
    assert "migrated" in report.findings[0].message
    assert [p.name for p in store_path.parent.glob("*backup*")] == []


async def test_repair_is_refused_while_anybody_has_the_store_open(store_path: Path) -> None:
    await fill(store_path)
    alter(store_path, "UPDATE sessions SET title = 'other'")
    async with log_at(store_path) as log:
        with pytest.raises(CallboardError, match="in use") as refused:
            mend(store_path)
        assert refused.value.kind == "storeBusy"
        await log.append("ses_0", said("goes on"), actor=CLIENT)
    assert mend(store_path).problems == ()


async def test_a_store_that_cannot_be_written_can_be_looked_through(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store_path)
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **more: mode != os.W_OK and access(path, mode, **more)
    )
    assert look(store_path).findings == ()


@pytest.mark.parametrize("content", [b"", b"x" * 5_000])
async def test_what_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(CallboardError) as refused:
        look(path)
    assert refused.value.kind == "storeUnsupported"
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(CallboardError) as refused:
        look(tmp_path / "nothing.db")
    assert refused.value.kind == "pathNotFound"


async def test_what_was_found_last_is_written_down_beside_the_locks(store_path: Path) -> None:
    await fill(store_path)
    look(store_path)
    assert carebook.read(store_path)["check"]["problems"] == 0
    alter(store_path, "UPDATE sessions SET title = 'other'")
    look(store_path)
    assert carebook.read(store_path)["check"]["problems"] == 1
    book = store_path.with_name("callboard.db.locks") / "care.json"
    assert stat.S_IMODE(book.stat().st_mode) == 0o600
    book.write_text('{"check": [1], "backup": {"at": 3}}')
    assert carebook.read(store_path) == {}
