"""Sessions from files: played beside the store, then published so that nobody else has to wait.

Imported history is history: no prompt in it wakes anybody, no approval in it can be answered, and no rule
comes with it. What was under way when it was exported has ended.
"""

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import Callable, Generator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

from attrs import frozen

from callboard_rpc.errors import CallboardError

from ..log import importing
from ..log.faultpoints import point
from ..log.faults import StaleFence
from ..log.importing import Piece, Scratch
from ..log.log import Log
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from ..turns.boundary import Query
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import SYSTEM, Grant, assert_fence, take
from .playing import Played, Stopped, Wanted, play
from .projection import SQL

FILE_LIMIT: Final = 2 * 1024**3
"""Bytes of a file."""

Tell = Callable[[str, int], None]
"""What is being done, and how far it is in percent."""


@frozen(kw_only=True)
class Imported:
    """`events` are from the file; `added` end what was under way when it was exported."""

    session_id: str
    exported_id: str
    events: int
    added: int


@frozen
class _Ears:
    """Who hears of an import, and how it is ended."""

    tell: Tell
    publishing: Callable[[int], None]
    stop: threading.Event


class Importing:
    """The imports of one host."""

    def __init__(self, log: Log, host_id: str) -> None:
        self._log = log
        self._host_id = host_id
        self._one = asyncio.Semaphore(1)
        self._running: dict[str, threading.Event] = {}
        self._tasks: set[asyncio.Task[Imported]] = set()
        self._stopping = False

    def open(self, path: str) -> BinaryIO:
        """A file on this machine. Raises pathNotFound, pathDenied, messageTooLarge."""
        return _opened(path, own=_files_of(self._log.path))

    async def run(
        self,
        file: BinaryIO | str,
        *,
        as_new: bool = False,
        folder: str | None = None,
        tell: Tell = lambda _, __: None,
        publishing: Callable[[int], None] = lambda _: None,
    ) -> Imported:
        """Imports a file, or a text, and closes the file. `as_new` gives the session and all in it new
        ids; `folder` is where it is to work, instead of where the file says. `publishing` hears how many
        events there are, before the first of them is written to the store.

        All or nothing: raises importRefused, sessionExists and store errors, with the
        store as it was. Cancelling the caller ends the import and takes it back.
        """
        import_id = self._log.ids.new("imp")
        stop = self._running[import_id] = threading.Event()
        if self._stopping:
            stop.set()
        work = asyncio.get_running_loop().create_task(
            self._run(import_id, file, as_new, folder, _Ears(tell, publishing, stop)),
            name=f"import {import_id}",
        )
        self._tasks.add(work)
        work.add_done_callback(self._done)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            raise

    def _done(self, work: "asyncio.Task[Imported]") -> None:
        self._tasks.discard(work)
        if not work.cancelled():
            work.exception()  # whoever waits has it; who was cancelled needs it no more

    async def _run(
        self,
        import_id: str,
        file: BinaryIO | str,
        as_new: bool,
        folder: str | None,
        ears: _Ears,
    ) -> Imported:
        source = BytesIO(file.encode()) if isinstance(file, str) else file
        try:
            with source:
                async with self._one:
                    wanted = Wanted(
                        session_id=self._log.ids.new("ses") if as_new else None, folder=folder
                    )
                    return await self._import(import_id, source, wanted, ears)
        except Stopped:
            raise CallboardError(
                "shuttingDown", "the import was ended before it was whole; nothing of it was kept"
            ) from None
        finally:
            del self._running[import_id]

    async def _import(
        self,
        import_id: str,
        source: BinaryIO,
        wanted: Wanted,
        ears: _Ears,
    ) -> Imported:
        loop = asyncio.get_running_loop()

        def read(events: int, of: int) -> None:
            with contextlib.suppress(RuntimeError):  # the loop may be gone at exit
                loop.call_soon_threadsafe(
                    ears.tell, f"Reading: {events:,} of {of:,} events", _half(events, of)
                )

        scratch = await asyncio.to_thread(self._log.scratch)
        try:
            played = await asyncio.to_thread(
                play, source, scratch, wanted=wanted, stop=ears.stop, tell=read
            )
            point("sessions.import_played")
            ears.publishing(played.head)
            await self._publish(import_id, scratch, played, wanted, ears)
        finally:
            await asyncio.to_thread(scratch.close)
        return Imported(
            session_id=played.session_id,
            exported_id=played.exported_id,
            events=played.events,
            added=played.head - played.events,
        )

    async def _publish(
        self,
        import_id: str,
        scratch: Scratch,
        played: Played,
        wanted: Wanted,
        ears: _Ears,
    ) -> None:
        pieces = scratch.pieces()
        piece = await asyncio.to_thread(next, pieces)
        grant: Grant | None = None
        try:
            while piece is not None:
                if ears.stop.is_set():
                    raise Stopped
                following = await asyncio.to_thread(next, pieces, None)
                publication = _Publication(
                    import_id=import_id,
                    host_id=self._host_id,
                    played=played,
                    piece=piece,
                    grant=grant,
                    ends=following is None,
                    folders_claimed=wanted.folder is None,
                )
                grant = await self._log.transact(publication.publish_piece)
                if piece.rows:
                    seq = piece.rows[-1][0]
                    ears.tell(
                        f"Writing: {seq:,} of {played.head:,} events", 50 + _half(seq, played.head)
                    )
                piece = following
        except BaseException:
            if grant is not None:
                await self.take_back(played.session_id, import_id)
            raise

    @contextlib.contextmanager
    def under_way(self, import_id: str) -> Generator[threading.Event]:
        """While a session that did not come from a file is published in the same way: it is not taken
        back by `tidy`. The event is set when it must end."""
        stop = self._running[import_id] = threading.Event()
        if self._stopping:
            stop.set()
        try:
            yield stop
        finally:
            del self._running[import_id]

    async def take_back(
        self, session_id: str, import_id: str, *, left_by: str | None = None
    ) -> None:
        """Takes out what there is of a session that was not published to its end; with `left_by`, for as
        long as that host has really left it."""

        def step(tx: Transaction) -> bool:
            if left_by is not None and not self._is_left(tx.all, import_id, left_by):
                return False
            return importing.take_back(tx, session_id, import_id, actor=SYSTEM)

        # a store that cannot be written just now is looked at again by `tidy`
        with contextlib.suppress(CallboardError):
            while await self._log.transact(step):
                pass

    async def tidy(self) -> None:
        """Takes back what was left of imports whose host is gone, or that failed here. A host that comes
        back, and would publish on, finds that it cannot."""
        for session_id, import_id, host_id in self._log.glance(LOG_SQL["left_imports"]):
            if self._is_left(self._log.glance, import_id, host_id):
                await self.take_back(session_id, import_id, left_by=host_id)

    def _is_left(self, query: Query, import_id: str, host_id: str) -> bool:
        if host_id == self._host_id:
            return import_id not in self._running
        return not query(SQL["heartbeat"], host_id)

    async def stop(self, within_s: float) -> None:
        """Ends what is under way and takes it back, as far as there is time: the next host does the
        rest."""
        self._stopping = True
        for stop in self._running.values():
            stop.set()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=within_s)


def must_hold(tx: Transaction, grant: Grant, import_id: str) -> None:
    """What comes before every piece but the first. Raises leaseLost when another host has taken this one
    for gone: it may have taken back some of what was published here already."""
    importing.must_be_ours(tx, grant.session_id, import_id)
    try:
        assert_fence(tx, grant)
    except StaleFence:
        raise importing.lost(grant.session_id) from None


@frozen(kw_only=True)
class _Publication:
    """One transaction of an import: a piece of it, the first and the last with what goes with them.
    `grant` is what the first one returned."""

    import_id: str
    host_id: str
    played: Played
    piece: Piece
    grant: Grant | None
    ends: bool
    folders_claimed: bool

    def publish_piece(self, tx: Transaction) -> Grant:
        played = self.played
        if self.grant is None:
            grant = self._begin(tx)
        else:
            grant = self.grant
            must_hold(tx, grant, self.import_id)
        importing.publish(tx, played.session_id, played.root_id, self.piece)
        if self.ends:
            if played.parent_id is not None:
                self._must_have_parent(tx)  # it may have been deleted since the first piece
            tx.execute(TURN_SQL["disown"], played.session_id)
            importing.complete(
                tx,
                played.session_id,
                played.root_id,
                head=played.head,
                folders_claimed=self.folders_claimed,
            )
            tx.decided(
                session_id=played.session_id,
                exported_id=played.exported_id,
                events=played.events,
                added=played.head - played.events,
            )
        return grant

    def _begin(self, tx: Transaction) -> Grant:
        played = self.played
        importing.begin(tx, played.session_id, import_id=self.import_id, host_id=self.host_id)
        fence = take(tx, played.session_id, self.host_id, kind="prepare", turn_id=None)
        if fence is None:
            raise CallboardError(
                "sessionExists",
                f"session {played.session_id} was deleted, and its last turn has not ended yet; try again",
                data={"sessionId": played.session_id},
            )
        for table, column, ids in (
            ("turns", "turn_id", played.turns),
            ("approvals", "approval_id", played.approvals),
        ):
            known = importing.ids_in_use(tx, table, column, ids)
            if known is not None:
                raise self._shared(known)
        for (call_id,) in tx.all("SELECT call_id FROM open_calls"):
            if call_id in played.calls:
                raise self._shared(call_id)
        if played.parent_id is not None:
            self._must_have_parent(tx)
        return Grant(session_id=played.session_id, turn_id="", fence=fence)

    def _shared(self, known: str) -> CallboardError:
        return CallboardError(
            "sessionExists",
            f"{known} is part of another session of this store already; import the file as a new session "
            "(newId, on the command line --new-id)",
            data={"sessionId": self.played.session_id},
        )

    def _must_have_parent(self, tx: Transaction) -> None:
        """A child comes under a parent that came from a file, too: so no file makes itself at home
        among a session's children, and under the rules that were given to its root."""
        played = self.played
        parent = tx.one(
            "SELECT s.root_id, s.depth, h.imported_through FROM sessions s "
            "JOIN heads h ON h.session_id = s.session_id WHERE s.session_id = ?",
            played.parent_id,
        )
        if parent is None or not parent[2] or parent[:2] != (played.root_id, played.depth - 1):
            raise CallboardError(
                "importRefused",
                f"the session is a child of {played.parent_id}, which was not imported into this store, or is "
                "not there any more; import that one first",
                data={"line": 2},
            )


def _half(part: int, whole: int) -> int:
    return 50 * part // max(1, whole)


# --- files --------------------------------------------------------------------------------------------


def _files_of(store: Path) -> frozenset[tuple[int, int]]:
    """The store's own files, by device and number."""
    found: set[tuple[int, int]] = set()
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            status = os.stat(f"{store}{suffix}")  # noqa: PTH116 (a name with a suffix)
            found.add((status.st_dev, status.st_ino))
    return frozenset(found)


def _opened(path: str, *, own: frozenset[tuple[int, int]]) -> BinaryIO:
    try:
        resolved = Path(path).resolve(strict=True)
        status = resolved.stat()
    except (OSError, RuntimeError, ValueError) as fault:
        raise CallboardError(
            "pathNotFound", f"there is no file {path[:200]}", data={"path": path}
        ) from fault
    # closing a second descriptor of the store's file would drop the locks that SQLite has on it
    if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) in own:
        raise CallboardError(
            "pathDenied", f"{path[:200]} is no file that was exported", data={"path": path}
        )
    if status.st_size > FILE_LIMIT:
        raise CallboardError(
            "messageTooLarge",
            f"{path[:200]} has {status.st_size} bytes, more than the {FILE_LIMIT} that are read",
            data={"limit": FILE_LIMIT},
        )
    try:
        return resolved.open("rb")
    except OSError as fault:
        raise CallboardError(
            "pathDenied", f"{path[:200]} cannot be read: {fault.strerror}", data={"path": path}
        ) from fault
