"""Following the log: every commit, of whatever process, told once and in order.

Our own commits come from the writer. Those of other processes are looked for when they ring (see `bell`),
or on a poll, while somebody follows, and at the latest with our own next commit, which is told only
after all that lies before it. So a listener never sees a position twice, or one out of order. What cannot
be read is told as skipped, at once and again when it can be; nothing is passed over on the quiet.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from .bell import Bell
from .record import Record
from .scope import APPROVAL_TYPES
from .sqlite import sqlite3
from .store import Store
from .transaction import SQL

_log = logging.getLogger(__name__)

_RECENT = 8_192
_RECENT_CHARS = 16 * 1024 * 1024
"""How much data the records may have that are remembered, besides how many there are."""
_SKIPPED = 5_000
"""More records than this from elsewhere are skipped rather than told one by one."""
_BREATH_S = 0.01
"""How long other processes' commits gather, when one follows the other."""
_SELDOM_S = 2.0
"""How often they are looked for though nobody rang: a process may have died before it could."""
_POLL_S = 0.05
_CALM_POLL_S = 0.09
_CALM_AFTER_S = 10.0
"""Where no bell can be heard: without a commit for so long, by whatever process, the next one may be
noticed a little later."""


class Feed:
    """What was committed, as it is committed. On the loop's thread; its reads are a few microseconds."""

    def __init__(self, store: Store) -> None:
        self.head = store.head()
        """The last `pos` that this process knows to be committed."""
        self._told = self.head
        self._missed = False
        """Something was told as skipped because it could not be read. Who looked then may have seen
        nothing either, so that is told once more."""
        self._store = store
        self._reader = store.reader()
        self._version = 0
        self._bell = Bell(store.lock.bell, self._rung, breath_s=_BREATH_S)
        self._recent: deque[Record] = deque()
        self._recent_chars = 0
        self._listeners: list[Callable[[list[Record]], None]] = []
        self._forgetters: list[Callable[[], None]] = []
        self._moved = asyncio.Event()
        self._moved_at = 0.0
        self._followers = 0
        self._wanted = asyncio.Event()
        self._watches: dict[str, set[asyncio.Event]] = {}
        self._tree_watches: dict[str, set[asyncio.Event]] = {}
        """By the root's id."""

    def close(self) -> None:
        self._bell.stop()
        self._reader.close()

    def query(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a statement that takes microseconds, read on the spot."""
        return self._reader.execute(sql, params).fetchall()

    # --- listeners ---

    def listen(self, listener: Callable[[list[Record]], None]) -> Callable[[], None]:
        """Calls `listener` on the loop with the records of each commit. Those of other processes come
        while somebody `followed` the log, or with the next commit of our own. Returns what stops it.

        What it raises is logged, and keeps nothing from the others."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def on_skip(self, forget: Callable[[], None]) -> None:
        """Calls `forget` when what was committed elsewhere is not told record by record, since it is too
        much or cannot be read: what was derived from the log before is out of date then."""
        self._forgetters.append(forget)

    @contextlib.contextmanager
    def followed(self) -> Generator[None]:
        """While somebody is in here, other processes' commits are looked for."""
        self._followers += 1
        self._wanted.set()
        try:
            if not self._bell.listening:
                self._listen()
            yield
        finally:
            self._followers -= 1
            if not self._followers:
                self._wanted.clear()

    async def moved(self, pos: int) -> int:
        """Waits until the head is beyond `pos`, by whatever process, and returns the head."""
        with self.followed():
            while self.head <= pos:
                await self._moved.wait()
            return self.head

    def watching(self, session_id: str) -> contextlib.AbstractContextManager[asyncio.Event]:
        """An event that is set when the session may have changed, by whatever process; and when a session
        below it asks for something, or was answered."""
        return self._watching(self._watches, session_id)

    def watching_tree(self, root_id: str) -> contextlib.AbstractContextManager[asyncio.Event]:
        """An event that is set when a session of a tree may have changed, by whatever process. Whoever clears
        it before a look misses nothing that is committed after the look."""
        return self._watching(self._tree_watches, root_id)

    @contextlib.contextmanager
    def _watching(
        self, watched: dict[str, set[asyncio.Event]], session_id: str
    ) -> Generator[asyncio.Event]:
        changed = asyncio.Event()
        watches = watched.setdefault(session_id, set())
        watches.add(changed)
        try:
            with self.followed():
                yield changed
        finally:
            watches.discard(changed)
            if not watches:
                watched.pop(session_id, None)

    def recent(self, after: int) -> list[Record] | None:
        """The records above `after` when all of them are remembered, else None."""
        if not self._recent or self._recent[-1].pos != self.head:
            return None
        count = self.head - after
        if count > len(self._recent):
            return None
        tail = [self._recent[index] for index in range(-count, 0)]
        return tail if not tail or tail[0].pos == after + 1 else None

    def _remember(self, records: list[Record]) -> None:
        recent = self._recent
        recent.extend(records)
        self._recent_chars += sum(len(record.data) for record in records)
        while recent and (len(recent) > _RECENT or self._recent_chars > _RECENT_CHARS):
            self._recent_chars -= len(recent.popleft().data)

    def _forget_recent(self) -> None:
        self._recent.clear()
        self._recent_chars = 0

    # --- commits ---

    def committed(self, records: list[Record]) -> None:
        """A commit of our own; what others have committed before it is told first."""
        first = records[0].pos
        if first > self._told + 1 or self._missed:
            try:
                self._take_in(below=first)
            except sqlite3.Error as fault:
                _log.warning("what other servers have committed could not be read: %s", fault)
                self._missed = True
                if first > self._told + 1:
                    self._skip_to(first - 1)
        self._tell([record for record in records if record.pos > self._told])
        self._store.lock.ring()

    def look(self) -> bool:
        """Takes in what other processes have committed by now; whether it could be read."""
        try:
            self._take_in()
        except sqlite3.Error as fault:
            _log.debug("what other servers have committed could not be read: %s", fault)
            return False
        return True

    async def poll(self) -> None:
        """Notices the commits of other processes while somebody follows."""
        clock = asyncio.get_running_loop().time
        while True:
            await self._wanted.wait()  # while nobody does, nothing is done at all
            if self._listen():
                await asyncio.sleep(_SELDOM_S)
            else:
                calm = clock() - self._moved_at > _CALM_AFTER_S
                await asyncio.sleep(_CALM_POLL_S if calm else _POLL_S)

    def _listen(self) -> bool:
        """Hears from now on when others ring, if that can be; and looks for what it did not hear."""
        hears = self._bell.listen()
        self._look_if_new()
        return hears

    def _rung(self) -> None:
        if self._followers:
            self._look_if_new()
        else:
            self._bell.stop()

    def knock(self) -> None:
        """Has other processes look at what leaves no event."""
        self._store.lock.knock()

    def door(self, heard: Callable[[], None]) -> Bell:
        """Hears when another process knocks."""
        return Bell(self._store.lock.door, heard, breath_s=_BREATH_S)

    def version(self) -> int:
        """Another number than before when something was committed, by whatever process."""
        try:
            return self._reader.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:
            return -1

    def _look_if_new(self) -> None:
        version = self.version()
        if (version != self._version or self._missed) and self.look():
            self._version = version

    def _take_in(self, *, below: int | None = None) -> None:
        head: int = self._reader.execute("SELECT max(pos) FROM events").fetchone()[0] or 0
        if self._missed:
            self._missed = False
            self._look_anew()
        end = head if below is None else min(head, below - 1)
        if end - self._told > _SKIPPED:
            self._skip_to(end)
        while self._told < end:
            rows = self._reader.execute(SQL["records_between"], (self._told, end)).fetchall()
            if not rows:
                break  # they are deleted again
            self._tell([Record.of(row) for row in rows])

    def _skip_to(self, pos: int) -> None:
        self._told = pos
        self.head = max(self.head, pos)
        self._forget_recent()
        self._look_anew()

    def _look_anew(self) -> None:
        _call(self._forgetters)
        self._moves()
        for session_id in self._watches:
            self._stir(session_id)
        self._stir_trees(self._tree_watches)

    def _tell(self, records: list[Record]) -> None:
        if not records:
            return
        if any(record.type == "session_deleted" for record in records):
            self._forget_recent()  # what is deleted is shown to nobody any more
        self._remember(records)
        self._told = records[-1].pos
        self.head = max(self.head, self._told)
        self._moves()
        _call(self._listeners, records)
        if self._tree_watches:
            self._stir_trees(self._trees_of(records))
        if self._watches:
            for record in records:
                self._stir(record.session_id)
                if record.type in APPROVAL_TYPES and record.root_id is not None:
                    self._stir(record.root_id)

    def _stir(self, session_id: str) -> None:
        for changed in self._watches.get(session_id, ()):
            changed.set()

    def _trees_of(self, records: list[Record]) -> Iterable[str]:
        """The roots of what was committed. In which tree a session was that another process has deleted is
        not known any more, so that may be any."""
        if any(record.type == "session_deleted" for record in records):
            return self._tree_watches
        return {record.root_id or record.session_id for record in records}

    def _stir_trees(self, root_ids: Iterable[str]) -> None:
        for root_id in root_ids:
            for changed in self._tree_watches.get(root_id, ()):
                changed.set()

    def _moves(self) -> None:
        self._moved_at = asyncio.get_running_loop().time()
        self._moved.set()
        self._moved = asyncio.Event()


def _call(listeners: Iterable[Callable[..., None]], *what: Any) -> None:
    """Whoever fails is the only one that does not hear of it."""
    for listener in list(listeners):
        try:
            listener(*what)
        except Exception:
            _log.exception("a listener of the log failed")
