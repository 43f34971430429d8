"""Backups: a copy of the store as it is at one moment, while others go on writing to it."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from callboard_rpc.errors import CallboardError

from . import carebook, filesystem
from .copying import DamagedCopyError, copy_database
from .durable import keep, part_of
from .faults import store_error
from .looking import looking_at, occupied
from .occupancy import locks_of
from .quarantine import WAY_OUT
from .sqlite import sqlite3
from .swap import staging_of


@frozen(kw_only=True)
class Backup:
    """A backup that is on the disk and was looked through. `head` is the last `pos` that it holds."""

    path: Path
    bytes: int
    store_id: str
    head: int
    sessions: int
    at: str


def back_up(
    store: Path,
    destination: Path,
    *,
    now: Callable[[], str],
    overwrite: bool = False,
    told: Callable[[int, int], None] | None = None,
) -> Backup:
    """Writes a backup of `store` to `destination`; in a folder, to a file named after store and time.

    What stands there stays whole until the new backup is, and is replaced only to `overwrite`. `told`
    hears of pages done and of all pages. Raises storeUnsupported, pathNotFound, pathDenied (there is
    something already), storeFull, storeReadOnly, storeIo, storeBusy, storeCorrupt.
    """
    at = now()
    source = filesystem.real(store)
    target = _place(source, destination, at)
    _must_be_free(source, target, overwrite=overwrite)
    with occupied(source), looking_at(source) as connection:
        head = 0
        try:
            with part_of(target) as part:
                copy_database(connection, part, told=told)
                store_id, head, sessions = _contents(part)
                keep(part, target, overwrite=overwrite)
        except FileExistsError as fault:
            raise _exists(target) from fault
        except DamagedCopyError as fault:
            raise CallboardError(
                "storeCorrupt",
                f"the store {source} is damaged ({fault}); no backup was made of it. {WAY_OUT}",
            ) from fault
        except (OSError, sqlite3.Error) as fault:
            named = store_error(fault, target)
            if named is None:
                raise
            message = named.message.replace("the store ", "the backup ", 1)
            raise CallboardError(named.kind, f"{message}. Nothing was left there") from fault
    carebook.note(source, "backup", {"at": at, "path": str(target)})
    return Backup(
        path=target,
        bytes=target.stat().st_size,
        store_id=store_id,
        head=head,
        sessions=sessions,
        at=at,
    )


def _place(source: Path, destination: Path, at: str) -> Path:
    target = destination.expanduser().absolute()
    if target.is_dir():
        target = target / f"{source.stem}-{re.sub(r'[^0-9]', '', at)[:14]}.db"
    if not target.parent.is_dir():
        raise CallboardError(
            "pathNotFound",
            f"there is no folder {target.parent} for the backup; make it first",
            data={"path": str(target.parent)},
        )
    target = filesystem.real(target.parent) / target.name
    kind = filesystem.type_of(target.parent)
    if filesystem.is_network(kind):
        raise CallboardError(
            "storeUnsupported",
            f"the backup {target} would lie on a network file system ({kind}), where SQLite cannot "
            "write it safely; make it in a local folder and copy it there",
        )
    return target


def _must_be_free(source: Path, target: Path, *, overwrite: bool) -> None:
    own = {source, *(source.with_name(source.name + tail) for tail in ("-wal", "-shm", "-journal"))}
    if target in own or (target.exists() and source.exists() and target.samefile(source)):
        raise CallboardError(
            "pathDenied",
            f"{target} is the store itself; choose another file for the backup",
            data={"path": str(target)},
        )
    if target == staging_of(source) or locks_of(source) in target.parents:
        raise CallboardError(
            "pathDenied",
            f"{target} is where the store keeps what it needs for itself; choose another file or folder "
            "for the backup",
            data={"path": str(target)},
        )
    if locks_of(target).exists():
        raise CallboardError(
            "pathDenied",
            f"{target} is a store; `callboard store restore` puts a backup in its place",
            data={"path": str(target)},
        )
    if os.path.lexists(target):
        if not target.is_file() or target.is_symlink():
            raise CallboardError(
                "pathDenied",
                f"{target} is there and is no plain file, so no backup takes its place; choose another "
                "file",
                data={"path": str(target)},
            )
        if not overwrite:
            raise _exists(target)
    for tail in ("-wal", "-journal"):
        other = target.with_name(target.name + tail)
        if other.exists():
            raise CallboardError(
                "pathDenied",
                f"{other} is there, which SQLite would take for a part of the backup; choose "
                "another file",
                data={"path": str(other)},
            )


def _exists(target: Path) -> CallboardError:
    return CallboardError(
        "pathDenied",
        f"{target} exists; choose another file, or overwrite it with --force",
        data={"path": str(target)},
    )


def _contents(path: Path) -> tuple[str, int, int]:
    """The store's id, the last `pos` and the number of sessions."""
    with looking_at(path, what="backup") as connection:
        return connection.execute(
            "SELECT (SELECT value FROM meta WHERE key = 'store_id'), "
            "(SELECT coalesce(max(pos), 0) FROM events), (SELECT count(*) FROM heads)"
        ).fetchone()
