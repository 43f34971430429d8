"""Backups and restores: whole or not at all, private, and nothing is overwritten unasked."""

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from log_care_kit import alter, contents, fill, look, store_id
from log_workbench import CLIENT, log_at, said, texts

from callboard.log import backup, carebook, durable, filesystem, occupancy, restoring
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.looking import Rows
from callboard.log.migrating import migrations
from callboard_rpc.errors import CallboardError

pytestmark = pytest.mark.anyio


def _back_up(store: Path, destination: Path, *, overwrite: bool = False) -> backup.Backup:
    return backup.back_up(store, destination, now=utc_now, overwrite=overwrite)


def _nobody(_: Rows) -> list[str]:
    return []


def _restore(store: Path, source: Path) -> restoring.Restored:
    return restoring.restore(store, source, ids=IdSource(), now=utc_now, users=_nobody)


def _refused(function: object, *arguments: object, **more: object) -> CallboardError:
    with pytest.raises(CallboardError) as refused:
        function(*arguments, **more)  # type: ignore[operator]
    return refused.value


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


# --- backup ---------------------------------------------------------------------------------------


async def test_a_backup_is_the_store_as_it_is_and_one_private_file(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    before = os.umask(0)
    try:
        async with log_at(store_path) as log:
            await log.append("ses_0", said("in the wal"), actor=CLIENT)
            made = _back_up(store_path, tmp_path / "backup.db")
            await log.append("ses_0", said("afterwards"), actor=CLIENT)
    finally:
        os.umask(before)
    assert (made.head, made.sessions, made.store_id) == (11, 2, store_id(store_path))
    assert made.bytes == made.path.stat().st_size
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert _names(tmp_path) == ["backup.db", "store"]
    assert look(made.path).findings == ()
    assert look(made.path).events == 11
    assert _names(tmp_path) == ["backup.db", "store"]  # a look puts nothing beside it
    assert carebook.read(store_path)["backup"]["path"] == str(made.path)
    async with log_at(made.path) as log:  # and it is a store like any other
        assert (await texts(log, "ses_0"))[-1] == "in the wal"


async def test_a_backup_into_a_folder_is_named_after_the_store_and_the_time(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    made = backup.back_up(store_path, tmp_path, now=lambda: "2031-05-17T09:30:00.123Z")
    assert made.path == tmp_path / "callboard-20310517093000.db"


async def test_what_stands_in_a_backup_s_place_is_kept_unless_asked_otherwise(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    target = tmp_path / "backup.db"
    target.write_text("mine")
    error = _refused(_back_up, store_path, target)
    assert error.kind == "pathDenied"
    assert "--force" in error.message
    assert target.read_text() == "mine"
    _back_up(store_path, target, overwrite=True)
    assert look(target).events == 10
    assert _names(tmp_path) == ["backup.db", "store"]


async def test_a_backup_never_takes_the_place_of_a_store_or_of_a_part_of_one(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    other = tmp_path / "other.db"
    await fill(other)
    link = tmp_path / "link.db"
    link.symlink_to(store_path)
    hard = tmp_path / "hard.db"
    os.link(store_path, hard)
    before = store_path.read_bytes()
    for target in (store_path, store_path.with_name("callboard.db-wal"), other, link, hard):
        assert _refused(_back_up, store_path, target, overwrite=True).kind == "pathDenied", target
    (tmp_path / "left.db-wal").write_bytes(b"of an older backup that was opened")
    error = _refused(_back_up, store_path, tmp_path / "left.db", overwrite=True)
    assert "left.db-wal" in error.message
    assert store_path.read_bytes() == before
    assert look(other).events == 10


async def test_a_backup_lies_nowhere_where_the_store_keeps_what_it_needs_for_itself(
    store_path: Path,
) -> None:
    await fill(store_path)
    locks = store_path.with_name("callboard.db.locks")
    (locks / "open.lock").touch()
    before = (locks / "open.lock").stat().st_ino
    for target in (locks, locks / "open.lock", store_path.with_name("callboard.db.incoming")):
        error = _refused(_back_up, store_path, target, overwrite=True)
        assert (error.kind, "for itself" in error.message) == ("pathDenied", True), target
    assert (locks / "open.lock").stat().st_ino == before
    assert _names(store_path.parent) == ["callboard.db", "callboard.db.locks"]


async def test_force_is_not_advised_where_it_does_not_help(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        error = _refused(_back_up, store_path, tmp_path / name, overwrite=True)
        assert error.kind == "pathDenied"
        assert "--force" not in error.message
    assert _names(tmp_path) == ["fifo", "link", "store"]


async def test_a_link_to_itself_is_named(store_path: Path, tmp_path: Path) -> None:
    await fill(store_path)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for function, arguments in (
        (_restore, (store_path, loop)),
        (_restore, (loop, store_path)),
        (_back_up, (loop, tmp_path / "b.db")),
        (look, (loop,)),
    ):
        error = _refused(function, *arguments)
        assert error.kind == "storeUnsupported"
        assert "link to itself" in error.message


async def test_a_backup_needs_a_folder_on_a_local_disk(
    store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store_path)
    assert _refused(_back_up, store_path, tmp_path / "no" / "b.db").kind == "pathNotFound"
    monkeypatch.setattr(filesystem, "type_of", lambda path: "nfs4")
    error = _refused(_back_up, store_path, tmp_path / "b.db")
    assert error.kind == "storeUnsupported"
    assert "copy it there" in error.message
    assert _names(tmp_path) == ["store"]


async def test_no_backup_is_made_of_a_damaged_store(store_path: Path, tmp_path: Path) -> None:
    await fill(store_path, sessions=4)
    data = bytearray(store_path.read_bytes())
    data[20 * 4096 : 21 * 4096] = b"\xa5" * 4096
    store_path.write_bytes(bytes(data))
    error = _refused(_back_up, store_path, tmp_path / "b.db")
    assert error.kind == "storeCorrupt"
    assert "callboard store check" in error.message
    assert _names(tmp_path) == ["store"]


@pytest.fixture
def little(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 300 KiB; where none can be mounted, on one whose files may not be larger."""
    folder = tmp_path / "little"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300 * 1024, before[1]))
    yield folder
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_disk_leaves_no_backup_and_no_harm(store_path: Path, little: Path) -> None:
    await fill(store_path, sessions=4)
    error = _refused(_back_up, store_path, little / "b.db")
    assert error.kind in ("storeFull", "storeIo")
    assert "the backup" in error.message
    assert _names(little) == []
    assert look(store_path).findings == ()


async def test_a_full_disk_leaves_the_store_that_was_to_be_replaced(
    store_path: Path, tmp_path: Path, little: Path
) -> None:
    await fill(store_path, sessions=4)
    made = _back_up(store_path, tmp_path / "b.db")
    small = little / "small.db"
    small.write_bytes(b"")
    error = _refused(_restore, small, made.path)
    assert error.kind in ("storeFull", "storeIo")
    assert f"the store {small}" in error.message  # it is there that there is no room
    assert _names(little) == ["small.db", "small.db.locks"]
    assert small.read_bytes() == b""


async def test_two_backups_to_one_place_do_not_mix(store_path: Path, tmp_path: Path) -> None:
    await fill(store_path)
    with durable.part_of(tmp_path / "b.db"):
        error = _refused(_back_up, store_path, tmp_path / "b.db")
        assert error.kind == "storeBusy"
    _back_up(store_path, tmp_path / "b.db")
    assert _names(tmp_path) == ["b.db", "store"]


def test_a_part_that_was_left_behind_is_made_private_before_anything_is_in_it(
    tmp_path: Path,
) -> None:
    target = tmp_path / "b.db"
    left = tmp_path / ".b.db.callboard-part"
    left.write_bytes(b"left")
    left.chmod(0o666)
    with durable.part_of(target) as part:
        assert part == left and part.read_bytes() == b""
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
        durable.keep(part, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_part_of_somebody_else_is_refused_and_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "b.db"
    left = tmp_path / ".b.db.callboard-part"
    left.write_bytes(b"theirs")
    own = os.geteuid()
    with monkeypatch.context() as patch:
        patch.setattr("os.geteuid", lambda: own + 1)
        with (
            pytest.raises(CallboardError, match="no file of yours") as caught,
            durable.part_of(target),
        ):
            pass
    assert (caught.value.kind, left.read_bytes()) == ("pathDenied", b"theirs")
    left.unlink()
    os.mkfifo(left)
    with pytest.raises(CallboardError, match="no file of yours"), durable.part_of(target):
        pass
    assert left.is_fifo()


def test_what_was_finished_before_a_crash_is_not_taken_for_a_part(tmp_path: Path) -> None:
    target = tmp_path / "b.db"
    with durable.part_of(target) as part:
        name = part
        part.write_bytes(b"whole")
        os.link(part, target)  # as in a process that is killed before it takes the other name away
        kept = part.read_bytes()
        part.unlink()
    os.link(target, name)
    with durable.part_of(target) as part:
        part.write_bytes(b"another")
    assert target.read_bytes() == kept == b"whole"
    assert _names(tmp_path) == ["b.db"]


# --- restore --------------------------------------------------------------------------------------


async def test_a_restored_store_holds_the_backup_and_the_old_one_is_kept_beside(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    made = _back_up(store_path, tmp_path / "b.db")
    async with log_at(store_path) as log:
        await log.append("ses_0", said("since then"), actor=CLIENT)
    old, was = contents(store_path), made.path.read_bytes()
    done = _restore(store_path, made.path)
    assert done.replaced is not None
    assert contents(done.replaced) == old
    assert contents(store_path) == contents(made.path)
    assert (done.head, done.sessions) == (10, 2)
    assert made.path.read_bytes() == was
    assert stat.S_IMODE(store_path.stat().st_mode) == 0o600
    again = _restore(store_path, done.replaced)  # and that is how it is taken back
    assert contents(store_path) == old
    assert again.replaced != done.replaced
    assert look(store_path).findings == ()


async def test_a_store_is_restored_where_there_was_none(store_path: Path, tmp_path: Path) -> None:
    await fill(store_path)
    made = _back_up(store_path, tmp_path / "b.db")
    done = _restore(tmp_path / "new" / "home" / "s.db", made.path)
    assert done.replaced is None
    async with log_at(done.path) as log:
        await log.append("ses_0", said("goes on"), actor=CLIENT)
        assert log.head == 11
    assert _names(done.path.parent) == ["s.db", "s.db.locks"]


async def test_a_wal_that_was_left_alone_is_no_part_of_what_is_restored(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    made = _back_up(store_path, tmp_path / "b.db")
    store_path.unlink()
    wal = store_path.with_name("callboard.db-wal")
    wal.write_bytes(b"left alone")
    _restore(store_path, made.path)
    assert not wal.exists()
    (kept,) = store_path.parent.glob("*.replaced-*-wal")
    assert kept.read_bytes() == b"left alone"
    assert look(store_path).findings == ()


async def test_protocol_3_a_cursor_from_before_a_restore_is_refused_and_never_misread(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    made = _back_up(store_path, tmp_path / "b.db")
    async with log_at(store_path) as log:
        await log.append("ses_0", said("since then"), actor=CLIENT)
        cursors = [log.cursor(pos) for pos in range(12)]
    _restore(store_path, made.path)
    async with log_at(store_path) as log:
        for _ in range(5):  # the new store goes on beyond where the old one ended
            await log.append("ses_0", said("anew"), actor=CLIENT)
        for cursor in cursors:
            assert _refused(log.position, cursor).kind == "invalidCursor"
        assert log.position(log.cursor()) == 15


async def test_a_restore_is_refused_while_anybody_has_the_store_open(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    made = _back_up(store_path, tmp_path / "b.db")
    async with log_at(store_path) as log:
        assert _refused(_restore, store_path, made.path).kind == "storeBusy"
        await log.append("ses_0", said("goes on"), actor=CLIENT)
    error = _refused(
        restoring.restore,
        store_path,
        made.path,
        ids=IdSource(),
        now=utc_now,
        users=lambda _: ["host_a (process 7)"],
    )
    assert error.kind == "storeBusy"
    assert "host_a (process 7)" in error.message
    assert look(store_path).events == 11
    assert _names(store_path.parent) == ["callboard.db", "callboard.db.locks"]


async def test_a_restore_is_refused_while_a_backup_is_made(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    made = _back_up(store_path, tmp_path / "b.db")
    refused: list[str] = []

    def told(_: int, __: int) -> None:
        refused.append(_refused(_restore, store_path, made.path).kind)

    backup.back_up(store_path, tmp_path / "other.db", now=utc_now, told=told)
    assert set(refused) == {"storeBusy"}


_BAD = {
    "nothing": (None, "pathNotFound"),
    "an empty file": (b"", "storeUnsupported"),
    "another kind of file": (b"words " * 999, "storeUnsupported"),
    "a database of another program": ("CREATE TABLE recipes (name TEXT)", "storeUnsupported"),
    "a newer store": ("PRAGMA user_version = 99", "storeVersion"),
    "one with a hole": ("DELETE FROM events WHERE pos = 2", "storeCorrupt"),
    "one that was cut off": (40_000, "storeCorrupt"),
    "one with a damaged page": (-1, "storeCorrupt"),
}


@pytest.mark.parametrize("what", _BAD)
async def test_a_backup_that_is_no_good_changes_nothing(
    store_path: Path, tmp_path: Path, what: str
) -> None:
    await fill(store_path)
    before = store_path.read_bytes()
    source = tmp_path / "b.db"
    damage, kind = _BAD[what]
    if isinstance(damage, bytes):
        source.write_bytes(damage)
    elif isinstance(damage, str):
        if "recipes" not in damage:
            _back_up(store_path, source)
        alter(source, damage)
    elif damage is not None:
        _back_up(store_path, source)
        data = bytearray(source.read_bytes())
        data[20 * 4096 : 21 * 4096] = b"\xa5" * 4096
        source.write_bytes(bytes(data[:damage]) if damage > 0 else bytes(data))
    error = _refused(_restore, store_path, source)
    assert error.kind == kind
    assert "b.db" in error.message
    assert store_path.read_bytes() == before
    assert _names(store_path.parent) == ["callboard.db", "callboard.db.locks"]


async def test_a_store_is_not_restored_from_itself(store_path: Path, tmp_path: Path) -> None:
    await fill(store_path)
    link = tmp_path / "link.db"
    link.symlink_to(store_path)
    for source in (store_path, link):
        assert _refused(_restore, store_path, source).kind == "pathDenied"
    assert look(store_path).findings == ()


async def test_a_damaged_store_can_be_restored_and_is_kept(
    store_path: Path, tmp_path: Path
) -> None:
    await fill(store_path)
    made = _back_up(store_path, tmp_path / "b.db")
    store_path.write_bytes(b"not a database at all" * 300)
    done = _restore(store_path, made.path)
    assert done.replaced is not None
    assert done.replaced.read_bytes() == b"not a database at all" * 300
    assert look(store_path).findings == ()


async def test_an_older_backup_is_restored_and_migrated_at_the_next_start(
    store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store_path)
    made = _back_up(store_path, tmp_path / "b.db")
    steps = migrations()
    more = "CREATE TABLE extra (a TEXT) STRICT;"
    monkeypatch.setattr("callboard.log.store.migrations", lambda: [*steps, more])
    done = _restore(store_path, made.path)
    async with log_at(done.path) as log:
        assert await log.query("SELECT count(*) FROM extra") == [(0,)]
        assert (await texts(log, "ses_0"))[0] == "precious words"


async def test_a_file_system_without_links_is_served_too(
    store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    await fill(store_path)
    monkeypatch.setattr(os, "link", link)
    made = _back_up(store_path, tmp_path / "b.db")
    assert _refused(_back_up, store_path, tmp_path / "b.db").kind == "pathDenied"
    old = contents(store_path)
    done = _restore(store_path, made.path)
    assert done.replaced is not None
    assert contents(done.replaced) == old == contents(store_path)


# --- who has the store open -----------------------------------------------------------------------

_HOLD = """
import sys
from pathlib import Path
from callboard.log import occupancy
with getattr(occupancy, sys.argv[1])(Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


def _holder(how: str, store: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, how, store],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("how", ["share", "alone"])
async def test_who_has_the_store_is_named_and_lets_go_when_it_is_killed(
    store_path: Path, how: str
) -> None:
    await fill(store_path)
    with _holder(how, store_path) as process:
        try:
            error = (
                _refused(occupancy.alone, store_path)
                if how == "share"
                else _refused(occupancy.share, store_path, wait_s=0)
            )
            assert error.kind == "storeBusy"
            assert str(process.pid) in error.message
            assert error.retry_after_ms
        finally:
            process.kill()
            process.communicate()
    occupancy.alone(store_path).close()


async def test_who_must_be_alone_is_waited_for(store_path: Path) -> None:
    await fill(store_path)
    with _holder("alone", store_path) as process:
        opening = subprocess.Popen(
            [sys.executable, "-c", _HOLD, "share", store_path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        process.communicate("")
        assert opening.stdout is not None
        assert opening.stdout.readline() == "held\n"
        opening.communicate("")


def test_a_swap_that_somebody_changed_is_told(store_path: Path) -> None:
    store_path.parent.mkdir()
    plan = occupancy.make_locks(store_path) / "swap.json"
    for text in ("{", "[]", '{"aside": 3}', '{"aside": "../x"}'):
        plan.write_text(text)
        with pytest.raises(CallboardError, match="remove it"):
            occupancy.share(store_path)
    plan.unlink()
    occupancy.share(store_path).close()
