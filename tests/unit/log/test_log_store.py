"""Opening a store: what is refused, with which words, and that nothing is lost by refusing."""

import asyncio
import errno
import json
import os
import shutil
import sqlite3 as standard_sqlite
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from log_workbench import AGENT, CLIENT, log_at, returned, said, session_in, tables, texts

from callboard.log import filesystem, store
from callboard.log.clock import utc_now
from callboard.log.faults import store_error
from callboard.log.ids import IdSource
from callboard.log.sqlite import has_wal_reset_bug, sqlite3
from callboard_rpc.errors import CallboardError

pytestmark = pytest.mark.anyio


def _open(path: Path) -> store.Store:
    return store.open_store(path, ids=IdSource(), now=utc_now)


def _refused(path: Path) -> CallboardError:
    with pytest.raises(CallboardError) as error:
        _open(path)
    assert path.name in error.value.message
    return error.value


async def _filled(path: Path) -> None:
    async with log_at(path) as log:
        await session_in(log)
        await log.append("ses_a", said("precious"), actor=CLIENT)


# --- privacy ----------------------------------------------------------------------------------


async def test_everything_is_private_from_the_first_byte_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "store.db"
    before = os.umask(0)
    try:
        async with log_at(path) as log:
            await session_in(log)
            await log.query("SELECT 1")
            found = {
                p.relative_to(path.parent).as_posix(): stat.S_IMODE(p.stat().st_mode)
                for p in path.parent.rglob("*")
            }
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert found == {
        "store.db": 0o600,
        "store.db-wal": 0o600,
        "store.db-shm": 0o600,
        "store.db.locks": 0o700,
        "store.db.locks/open.lock": 0o600,
        "store.db.locks/turnstile.lock": 0o600,
        "store.db.locks/writer.lock": 0o600,
    }


# --- damage -----------------------------------------------------------------------------------


async def test_interrupts_69_a_store_that_is_no_database_any_more_is_copied_aside_and_left_as_it_is(
    store_path: Path,
) -> None:
    await _filled(store_path)
    store_path.write_bytes(b"this is not a database" * 500)
    error = _refused(store_path)
    assert error.kind == "storeCorrupt"
    copy = Path(error.data["copy"])
    assert copy.read_bytes() == store_path.read_bytes() == b"this is not a database" * 500
    assert str(copy) in error.message
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    store_path.unlink()
    _open(store_path).close()  # the way out that the message names


async def test_a_file_of_somebody_else_s_is_refused_and_nothing_is_put_beside_it(
    store_path: Path,
) -> None:
    store_path.parent.mkdir()
    store_path.write_bytes(b"root:x:0:0:root:/root:/bin/sh\n" * 20)
    assert _refused(store_path).kind == "storeUnsupported"
    assert [each.name for each in store_path.parent.iterdir()] == [store_path.name]


@pytest.mark.parametrize("size", [1, 50, 99, 100, 4_000, 5_000])
async def test_interrupts_69_a_file_that_was_cut_off_is_seen(store_path: Path, size: int) -> None:
    await _filled(store_path)
    whole = store_path.read_bytes()
    assert not store_path.with_name(store_path.name + "-wal").exists()
    store_path.write_bytes(whole[:size])
    assert _refused(store_path).kind == "storeCorrupt"
    assert store_path.read_bytes() == whole[:size]


async def test_interrupts_69_damage_deep_inside_is_named_too(store_path: Path) -> None:
    await _filled(store_path)
    data = bytearray(store_path.read_bytes())
    data[100:108] = b"\xff" * 8  # the schema's own page
    store_path.write_bytes(bytes(data))
    error = _refused(store_path)
    assert error.kind == "storeCorrupt"
    assert store_path.read_bytes() == bytes(data)
    assert Path(error.data["copy"]).read_bytes() == bytes(data)


async def test_an_uncheckpointed_wal_is_kept_with_the_copy(store_path: Path) -> None:
    await _filled(store_path)
    wal = store_path.with_name(store_path.name + "-wal")
    wal.write_bytes(b"the only whole part")
    store_path.write_bytes(b"garbage" * 100)
    copy = Path(_refused(store_path).data["copy"])
    assert copy.with_name(copy.name + "-wal").read_bytes() == b"the only whole part"


async def test_an_empty_file_is_a_new_store(store_path: Path) -> None:
    store_path.parent.mkdir()
    store_path.touch()
    await _filled(store_path)
    async with log_at(store_path) as log:
        assert await texts(log, "ses_a") == ["precious"]


# --- other versions, other programs, other kinds of files ---------------------------------------


async def test_a_newer_store_is_refused_and_not_touched(store_path: Path) -> None:
    await _filled(store_path)
    with standard_sqlite.connect(store_path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = store_path.read_bytes()
    error = _refused(store_path)
    assert error.kind == "storeVersion"
    assert error.data == {"found": 99, "supported": len(store.migrations())}
    assert "upgrade" in error.message
    assert store_path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 1, len(store.migrations())])
async def test_another_program_s_database_is_left_alone(store_path: Path, version: int) -> None:
    store_path.parent.mkdir()
    connection = standard_sqlite.connect(store_path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    before = store_path.read_bytes()
    error = _refused(store_path)
    assert error.kind == "storeUnsupported"
    assert "--store" in error.message
    assert store_path.read_bytes() == before


async def test_a_folder_in_the_place_of_the_store_is_named(store_path: Path) -> None:
    store_path.mkdir(parents=True)
    assert _refused(store_path).kind == "storeIo"


async def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert _refused(tmp_path / "file" / "store.db").kind == "storeIo"


async def test_a_migration_from_the_first_version_keeps_what_is_there(store_path: Path) -> None:
    first, *rest = store.migrations()
    assert rest
    store_path.parent.mkdir()
    connection = standard_sqlite.connect(store_path)
    connection.executescript(first)
    connection.execute("PRAGMA user_version = 1")
    connection.execute("INSERT INTO heads VALUES ('ses_a', 1, 'birth', 'ses_a')")
    data = {"sessionId": "ses_a", "rootId": "ses_a", "cwd": "/w", "profile": "p", "mode": "work"}
    connection.execute(
        "INSERT INTO events (session_id, seq, event_id, type, at, actor, data) VALUES "
        "('ses_a', 1, 'evt', 'session_created', '2031-01-01T00:00:00.000Z', "
        '\'{"kind":"client","id":"c"}\', ?)',
        (json.dumps(data),),
    )
    connection.commit()
    connection.close()
    async with log_at(store_path) as log:
        await log.rebuild()
        assert await log.query("SELECT session_id, cwd FROM sessions") == [("ses_a", "/w")]
        record = await log.append("ses_a", said("goes on"), actor=CLIENT)
        assert record.seq == 2
        assert await log.query("PRAGMA user_version") == [(len(store.migrations()),)]


async def test_a_migration_that_fails_leaves_the_file_as_it_was(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _filled(store_path)
    steps = store.migrations()
    bad = "CREATE TABLE extra (a TEXT);\nINSERT INTO extra VALUES ('x');\nSELECT nonsense;"
    monkeypatch.setattr(store, "migrations", lambda: [*steps, bad])
    with pytest.raises(sqlite3.OperationalError, match="nonsense"):
        _open(store_path)
    monkeypatch.undo()
    async with log_at(store_path) as log:
        assert await texts(log, "ses_a") == ["precious"]
        assert await log.query("SELECT 1 FROM sqlite_master WHERE name = 'extra'") == []


async def test_the_store_keeps_its_id_and_two_stores_have_two(tmp_path: Path) -> None:
    ids: list[str] = []
    for name in ("a.db", "b.db", "a.db"):
        opened = _open(tmp_path / name)
        ids.append(opened.store_id)
        opened.close()
    assert ids[0] == ids[2] != ids[1]


async def test_a_link_to_a_store_is_that_store_with_one_lock(tmp_path: Path) -> None:
    async with log_at(tmp_path / "store.db") as log:
        await session_in(log)
        (tmp_path / "link.db").symlink_to(tmp_path / "store.db")
        async with log_at(tmp_path / "link.db") as other:
            assert other.path == log.path
            await other.append("ses_a", said("x"), actor=CLIENT)
        assert not (tmp_path / "link.db.locks").exists()


async def test_a_link_to_itself_in_the_place_of_the_store_is_named(tmp_path: Path) -> None:
    loop = tmp_path / "store.db"
    loop.symlink_to(loop)
    error = _refused(loop)
    assert error.kind == "storeUnsupported"
    assert str(loop) in error.message


async def test_opening_twice_in_one_process_drops_no_lock_of_the_first(store_path: Path) -> None:
    """A process that closes any descriptor of a file loses its locks on it: then another process that
    closes the store would take itself for the last one and delete the WAL under us."""
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from callboard.log.store import open_store\nfrom callboard.log.ids import IdSource\n"
        "from callboard.log.clock import utc_now\n"
        "open_store(Path(sys.argv[1]), ids=IdSource(), now=utc_now).close()\n"
    )
    wal = store_path.with_name(store_path.name + "-wal")
    async with log_at(store_path) as log:
        await session_in(log)
        _open(store_path).close()
        subprocess.run([sys.executable, "-c", script, store_path], check=True, timeout=60)
        assert wal.exists()
        await log.append("ses_a", said("after"), actor=CLIENT)
    async with log_at(store_path) as log:
        assert await texts(log, "ses_a") == ["after"]


# --- where it lies --------------------------------------------------------------------------------

_MOUNTS = r"""
22 28 0:21 / /proc rw,nosuid shared:13 - proc proc rw
28 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw
40 28 0:40 / /net rw - nfs4 host:/export rw,vers=4.2
41 28 0:41 / /net/local rw - tmpfs tmpfs rw
42 28 0:42 / /mnt/with\040space rw shared:9 master:1 - cifs //host/share rw
43 28 0:43 / /home/x/remote rw - fuse.sshfs x@host:/ rw
44 28 0:44 / /stacked rw - ext4 /dev/a rw
45 28 0:45 / /stacked rw - nfs host:/ rw
47 28 0:47 / /mnt/größe rw - nfs host:/ rw
broken line
46 28 0:46
"""


@pytest.mark.parametrize(
    ("path", "kind", "network"),
    [
        ("/home/x", "ext4", False),
        ("/net", "nfs4", True),
        ("/net/a/b", "nfs4", True),
        ("/net/local/a", "tmpfs", False),
        ("/netto", "ext4", False),
        ("/mnt/with space/a", "cifs", True),
        ("/home/x/remote/a", "fuse.sshfs", True),
        ("/stacked/a", "nfs", True),
        ("/mnt/größe/a", "nfs", True),
    ],
)
def test_interrupts_the_file_system_is_that_of_the_nearest_mount(
    path: str, kind: str, network: bool
) -> None:
    assert filesystem.type_of(Path(path), _MOUNTS) == kind
    assert filesystem.is_network(kind) is network


def test_an_unknown_file_system_is_not_refused() -> None:
    assert filesystem.type_of(Path("/x"), "") is None
    assert not filesystem.is_network(None)


async def test_a_network_file_system_is_refused_with_the_way_out(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filesystem, "type_of", lambda path: "nfs4")
    error = _refused(store_path)
    assert error.kind == "storeUnsupported"
    assert "nfs4" in error.message
    assert "CALLBOARD_STORE" in error.message
    assert not store_path.exists()


async def test_a_place_without_wal_is_refused(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def without_wal(*_: object, **more: object) -> object:
        return connect(":memory:", isolation_level=None)

    monkeypatch.setattr(store.sqlite3, "connect", without_wal)
    assert _refused(store_path).kind == "storeUnsupported"


# --- what may not be written ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind", "retryable"),
    [
        (OSError(errno.EACCES, "x"), "storeReadOnly", False),
        (OSError(errno.EROFS, "x"), "storeReadOnly", False),
        (OSError(errno.EPERM, "x"), "storeReadOnly", False),
        (OSError(errno.ENOSPC, "x"), "storeFull", True),
        (OSError(errno.EDQUOT, "x"), "storeFull", True),
        (OSError(errno.EIO, "x"), "storeIo", True),
        (OSError(errno.ENOTDIR, "x"), "storeIo", True),
        (sqlite3.OperationalError("database is locked"), "storeBusy", True),
        (sqlite3.OperationalError("attempt to write a readonly database"), "storeReadOnly", False),
        (sqlite3.OperationalError("unable to open database file"), "storeReadOnly", False),
        (sqlite3.OperationalError("database or disk is full"), "storeFull", True),
        (sqlite3.OperationalError("disk I/O error"), "storeIo", True),
        (sqlite3.DatabaseError("database disk image is malformed"), "storeCorrupt", False),
        (sqlite3.DatabaseError("file is not a database"), "storeCorrupt", False),
    ],
    ids=lambda value: str(value)[:30],
)
def test_every_failure_of_the_store_has_a_name_and_a_way_out(
    fault: Exception, kind: str, retryable: bool
) -> None:
    error = store_error(fault, Path("/data/store.db"))
    assert error is not None
    assert (error.kind, error.spec.retryable) == (kind, retryable)
    assert "/data/store.db" in error.message


def test_an_i_o_error_on_a_disk_without_room_is_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room for its shared memory, SQLite speaks of a disk I/O error."""
    fault = sqlite3.OperationalError("disk I/O error")
    error = store_error(fault, tmp_path / "store.db")
    assert error is not None and error.kind == "storeIo"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 100, 0))  # type: ignore[attr-defined]
    error = store_error(fault, tmp_path / "store.db")
    assert error is not None and error.kind == "storeFull" and "free some space" in error.message


def test_what_is_no_failure_of_the_store_is_none() -> None:
    assert store_error(sqlite3.OperationalError("no such table: x"), Path("/s")) is None
    assert store_error(ValueError("x"), Path("/s")) is None


async def test_a_file_that_may_not_be_written_is_refused_before_anything_is_tried(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _filled(store_path)
    before = sorted(p.name for p in store_path.parent.iterdir())
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    error = _refused(store_path)
    assert error.kind == "storeReadOnly"
    assert "permissions" in error.message
    assert sorted(p.name for p in store_path.parent.iterdir()) == before


_OPENING = """
import ctypes, os, sys
if os.getuid() == 0 and "ORDINARY" not in os.environ:
    # root may write everything, unless it gives up CAP_DAC_OVERRIDE
    assert ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) == 0
    os.environ["ORDINARY"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
from pathlib import Path
from callboard.log.store import open_store
from callboard.log.ids import IdSource
from callboard.log.clock import utc_now
from callboard_rpc.errors import CallboardError
try:
    open_store(Path(sys.argv[1]), ids=IdSource(), now=utc_now).close()
except CallboardError as error:
    print(error.kind)
else:
    print("opened")
"""


@pytest.mark.parametrize("what", ["file", "folder"])
async def test_a_read_only_file_or_folder_is_named(store_path: Path, what: str) -> None:
    await _filled(store_path)
    if what == "file":
        store_path.chmod(0o444)
    else:
        store_path.unlink()
        store_path.parent.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _OPENING, store_path],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        store_path.parent.chmod(0o700)
    assert done.stdout == "storeReadOnly\n", done.stderr


async def test_a_full_disk_fails_the_append_and_nothing_else(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        await log.append("ses_a", said("before"), actor=CLIENT)
        pages = (await log.query("PRAGMA page_count"))[0][0]
        await log.transact(lambda tx: tx.execute(f"PRAGMA max_page_count = {pages + 4}"))
        rows = await tables(log)
        with pytest.raises(CallboardError) as error:
            await log.append("ses_a", returned("c", os.urandom(60_000).hex()), actor=AGENT)
        assert error.value.kind == "storeFull"
        assert error.value.spec.retryable
        assert "free some space" in error.value.message
        assert await tables(log) == rows
        # in a group commit, too: who did fit may be told so or not, but never wrongly
        jobs = [
            log.submit(
                lambda tx, n=n: tx.append("ses_a", returned(f"c{n}", "y" * 50_000), actor=AGENT)
            )
            for n in range(8)
        ]
        outcomes = await asyncio.gather(*jobs, return_exceptions=True)
        kept = [r.seq for r in await log.session("ses_a") if r.type == "tool_result"]
        told = [o.seq for o in outcomes if not isinstance(o, BaseException)]
        assert kept == told
        assert any(isinstance(o, CallboardError) and o.kind == "storeFull" for o in outcomes)
        # and when there is room again, it goes on
        await log.transact(lambda tx: tx.execute("PRAGMA max_page_count = 100000000"))
        record = await log.append("ses_a", said("after"), actor=CLIENT)
        assert record.seq == 3 + len(kept)


async def test_an_unwritable_store_fails_the_append_by_name(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        await log.transact(lambda tx: tx.execute("PRAGMA query_only = ON"))
        with pytest.raises(CallboardError) as error:
            await log.append("ses_a", said("x"), actor=CLIENT)
        assert error.value.kind == "storeReadOnly"
        assert await texts(log, "ses_a") == []


# --- the library ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ("3.6.23", False), ("3.7.0", True), ("3.40.1", True), ("3.44.5", True), ("3.44.6", False),
        ("3.45.0", True), ("3.50.6", True), ("3.50.7", False), ("3.51.2", True), ("3.51.3", False),
        ("3.53.4", False), ("4.0", False),
    ],
)  # fmt: skip
def test_limits_3_4_which_sqlite_can_lose_commits(version: str, affected: bool) -> None:
    assert has_wal_reset_bug(version) is affected
