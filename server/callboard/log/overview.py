"""A store at a glance."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import frozen

from . import carebook, filesystem
from .examining import SQL
from .looking import Rows, looking_at, occupied, rows_of


@frozen(kw_only=True)
class Overview:
    """What a store holds; sizes in bytes. `free_bytes` is what a vacuum gives back at least. `users`
    are the hosts that live; `backup` and `check` the last ones that are known of."""

    path: Path
    store_id: str
    version: int
    bytes: int
    wal_bytes: int
    free_bytes: int
    sessions: int
    events: int
    blobs: int
    blob_bytes: int
    head: int
    indexed_through: int
    users: tuple[str, ...]
    backup: dict[str, Any] | None
    check: dict[str, Any] | None


def overview(store: Path, *, users: Callable[[Rows], list[str]]) -> Overview:
    """Looks at a store without changing it. Raises what `looking_at` raises."""
    path = filesystem.real(store)
    wal = path.with_name(path.name + "-wal")
    with occupied(path), looking_at(path) as connection:
        rows = rows_of(connection)
        sessions, events, blobs, blob_bytes, head, through = rows(SQL["counts"])[0]
        free: int = rows("PRAGMA freelist_count")[0][0] * rows("PRAGMA page_size")[0][0]
        known = carebook.read(path)
        return Overview(
            path=path,
            store_id=rows("SELECT coalesce(max(value), '') FROM meta WHERE key = 'store_id'")[0][0],
            version=rows("PRAGMA user_version")[0][0],
            bytes=path.stat().st_size,
            wal_bytes=wal.stat().st_size if wal.exists() else 0,
            free_bytes=free,
            sessions=sessions,
            events=events,
            blobs=blobs,
            blob_bytes=blob_bytes,
            head=head,
            indexed_through=through,
            users=tuple(users(rows)),
            backup=known.get("backup"),
            check=known.get("check"),
        )
