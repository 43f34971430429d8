"""A new session that has another one's history up to the end of a turn.

The history is copied, so that the fork is a session like any other: read, searched, exported and kept
when its origin is deleted; only blobs are shared, by their address. What is copied are events before
the end of a turn, which never change; so the origin may run meanwhile, here or elsewhere, and need not
be held. The fork itself is held, as an import is: published in short pieces, found by nobody until
the last one, and taken back when its server dies before that.

No rule and no approval comes along: what a person had allowed was for the session where it was asked.
"""

import asyncio
import contextvars
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson
from attrs import define, frozen

from callboard_rpc.common import Actor, ForkedFrom, SessionId, TurnId
from callboard_rpc.convert import unstructure
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import SessionCreated, SessionForked
from callboard_rpc.sessions import Session

from ..log import importing
from ..log.faults import no_session
from ..log.log import Log
from ..log.record import SELECT, Record
from ..log.text import quoted
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import Grant, take
from .content import clean_title
from .importing import Importing, must_hold
from .inheriting import INHERITED, Extent, Inheritance
from .projection import SQL, find_room
from .reading import Reading
from .rewound import Gone

_SPAN = 5_000
"""Events that are looked through at once."""
_BLOB = re.compile(r"blob_[0-9a-f]{64}")
_ENDED = "the fork was ended before it was whole; nothing of it was kept"


@frozen(kw_only=True)
class _Plan:
    """What is to be made, of what."""

    session_id: str
    source: Session
    source_birth: str
    folders_claimed: int
    """Whether the folders are only what an imported file said."""
    origin: ForkedFrom
    extent: Extent
    title: str | None
    by: Actor


@frozen
class _Copy:
    """An event of the origin, and its seq and data in the fork."""

    record: Record
    seq: int
    data: str


class Forking:
    """The forks of one host. `importing` knows what is being published here, and takes it back."""

    def __init__(self, log: Log, reading: Reading, importing: Importing, host_id: str) -> None:
        self._log = log
        self._reading = reading
        self._importing = importing
        self._host_id = host_id
        self._tasks: set[asyncio.Task[None]] = set()

    async def fork(
        self, session_id: str, *, at_turn_id: str | None, title: str | None, by: Actor
    ) -> Session:
        """The new session, whole. Cancelling the caller takes back what there is of it.

        Raises sessionNotFound, rootOnly for a child, turnNotFound, and turnInProgress for a turn that
        has not ended.
        """
        plan = await self._plan(session_id, at_turn_id, title, by)
        import_id = self._log.ids.new("imp")
        with self._importing.under_way(import_id) as stop:
            work = asyncio.get_running_loop().create_task(
                self._publish(plan, import_id, stop), name=f"fork {plan.session_id}"
            )
            self._tasks.add(work)
            work.add_done_callback(self._done)
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                stop.set()
                raise
        return await self._reading.session(plan.session_id)

    def _done(self, work: "asyncio.Task[None]") -> None:
        self._tasks.discard(work)
        if not work.cancelled():
            work.exception()  # whoever waits has it; who was cancelled needs it no more

    # --- what there is --------------------------------------------------------------------------------

    async def _plan(
        self, session_id: str, at_turn_id: str | None, title: str | None, by: Actor
    ) -> _Plan:
        source = await self._reading.session(session_id)
        if source.parent_id is not None:
            raise CallboardError(
                "rootOnly",
                f"session {session_id} is a child of {source.parent_id}, and what it may do is bound to "
                f"that; fork {source.root_id}",
            )
        head = await self._log.query(SQL["fork_source"], session_id)
        if not head:
            raise _gone(session_id)
        last_seq, birth, folders_claimed, open_turn = head[0]
        gone = Gone.of(
            Record.of(row).value
            for row in await self._log.query(
                f"{SELECT} WHERE session_id = ? AND type = 'session_rewound'", session_id
            )
        )
        if at_turn_id is None:
            origin = await self._now(session_id, last_seq, open_turn, gone)
        else:
            origin = await self._end_of(session_id, at_turn_id)
        named = clean_title(title)
        return _Plan(
            session_id=self._log.ids.new("ses"),
            source=source,
            source_birth=birth,
            folders_claimed=folders_claimed,
            origin=origin,
            extent=await self._extent(session_id, origin.seq),
            title=named or (f"{source.title} (fork)" if source.title else None),
            by=by,
        )

    async def _end_of(self, session_id: str, turn_id: str) -> ForkedFrom:
        """The end of a turn, of whatever became of it since."""
        rows = await self._log.query(TURN_SQL["turn"], turn_id)
        if rows and rows[0][1] == session_id and rows[0][7] is None:
            raise CallboardError(
                "turnInProgress",
                f"turn {turn_id} has not ended; fork at an earlier turn, or wait for its end",
                data={"turnId": turn_id},
            )
        last: int | None = (await self._log.query(SQL["last_of_turn"], session_id, turn_id))[0][0]
        if last is None:
            raise CallboardError(
                "turnNotFound", f"session {session_id} never had a turn {quoted(turn_id)}"
            )
        return ForkedFrom(session_id=SessionId(session_id), turn_id=TurnId(turn_id), seq=last)

    async def _now(
        self, session_id: str, last_seq: int, open_turn: str | None, gone: Gone
    ) -> ForkedFrom:
        """All that is finished: what a turn that runs or is parked has done until now stays out."""
        if open_turn is not None:
            first: int = (await self._log.query(SQL["first_of_turn"], session_id, open_turn))[0][0]
            last_seq = first - 1
        turns = [
            (seq, turn_id)
            for seq, turn_id in await self._log.query(SQL["turns_within"], session_id, 1, last_seq)
            if seq not in gone
        ]
        if not turns:
            raise CallboardError(
                "turnNotFound",
                f"session {session_id} has no turn yet that has ended; create a session instead",
            )
        return ForkedFrom(
            session_id=SessionId(session_id), turn_id=TurnId(max(turns)[1]), seq=last_seq
        )

    async def _extent(self, session_id: str, through: int) -> Extent:
        """What counts as of seq `through`: a rewind that came later takes nothing away."""
        query = self._log.query
        rewinds = await query(
            f"{SELECT} WHERE session_id = ? AND type = 'session_rewound' AND seq <= ?",
            session_id,
            through,
        )
        gone = Gone.of(Record.of(row).value for row in rewinds)
        admitted: set[int] = set()
        answered: set[str] = set()
        for low in range(1, through + 1, _SPAN):
            span = (session_id, low, min(low + _SPAN - 1, through))
            admitted.update(
                seq for ack, seq in await query(SQL["admitted_within"], *span) if ack not in gone
            )
            answered.update(
                call for seq, call in await query(SQL["answered_within"], *span) if seq not in gone
            )
        return Extent(gone=gone, admitted=admitted, answered=answered)

    # --- what is made of it ---------------------------------------------------------------------------

    async def _publish(self, plan: _Plan, import_id: str, stop: Any) -> None:
        publication = _Publication(plan=plan, import_id=import_id, host_id=self._host_id)
        try:
            async for piece, last in self._pieces(plan):
                if stop.is_set():
                    raise CallboardError("shuttingDown", _ENDED)
                publication.grant = await self._log.transact(
                    lambda tx, piece=piece, last=last: publication.commit(tx, piece, last=last)
                )
        except BaseException:
            if publication.grant is not None:
                # not in the name of the request, which may have been done by somebody else meanwhile
                await asyncio.get_running_loop().create_task(
                    self._importing.take_back(plan.session_id, import_id),
                    context=contextvars.Context(),
                )
            raise

    async def _pieces(self, plan: _Plan) -> AsyncIterator[tuple[Sequence[_Copy], bool]]:
        """The events in pieces that are short enough for everybody else's commits. No piece parts a call
        from its result: none is open in any commit, since the call is the origin's, and has ended."""
        inheritance = Inheritance(plan.extent)
        piece: list[_Copy] = []
        size = 0
        async for record in self._records(plan.source.session_id, plan.origin.seq):
            whole = len(piece) >= importing.PIECE_EVENTS or size >= importing.PIECE_BYTES
            if whole and not inheritance.open_calls:
                yield piece, False
                piece, size = [], 0
            seq = inheritance.next_seq
            data = inheritance.take(record)
            if data is not None:
                piece.append(_Copy(record, seq, data))
                size += record.size
        yield piece, True

    async def _records(self, session_id: str, through: int) -> AsyncIterator[Record]:
        seq = 0
        kinds = ",".join("?" * len(INHERITED))
        while True:
            rows = await self._log.query(
                f"{SELECT} WHERE session_id = ? AND seq > ? AND seq <= ? AND type IN ({kinds}) "
                "ORDER BY seq LIMIT ?",
                session_id,
                seq,
                through,
                *INHERITED,
                importing.PIECE_EVENTS,
            )
            for row in rows:
                yield Record.of(row)
            if len(rows) < importing.PIECE_EVENTS:
                return
            seq = rows[-1][2]


@define
class _Publication:
    """The transactions of a fork: a piece in each, in the first and the last what goes with them."""

    plan: _Plan
    import_id: str
    host_id: str
    grant: Grant | None = None
    """What the first of them has returned."""

    def commit(self, tx: Transaction, piece: Sequence[_Copy], *, last: bool) -> Grant:
        plan = self.plan
        # the origin's blobs are there as long as it is
        if tx.value(SQL["birth"], plan.source.session_id) != plan.source_birth:
            raise _gone(plan.source.session_id)
        if self.grant is None:
            grant = self._begin(tx)
        else:
            grant = self.grant
            must_hold(tx, grant, self.import_id)
        for copy in piece:
            self._place(tx, copy)
        if last:
            self._complete(tx, head=piece[-1].seq if piece else 1)
        return grant

    def _begin(self, tx: Transaction) -> Grant:
        plan, source = self.plan, self.plan.source
        importing.begin(tx, plan.session_id, import_id=self.import_id, host_id=self.host_id)
        fence = take(tx, plan.session_id, self.host_id, kind="prepare", turn_id=None)
        assert fence is not None  # its id is new: nobody can have it
        room = find_room(tx.all, source.session_id)
        created = SessionCreated(
            session_id=SessionId(plan.session_id),
            root_id=SessionId(plan.session_id),
            cwd=source.cwd,
            additional_directories=source.additional_directories,
            profile=source.profile,
            mode=source.mode,
            model=source.model,
            title=plan.title,
            metadata=source.metadata,
            forked_from=plan.origin,
            members=room.members,
            host=room.host,
            burst_budget=room.burst_budget,
        )
        tx.place(
            Record(
                pos=0,
                session_id=plan.session_id,
                seq=1,
                event_id=tx.new_id("evt"),
                type="session_created",
                at=tx.now(),
                actor=tx.writing.redact(orjson.dumps(unstructure(plan.by)).decode()),
                turn_id=None,
                fence=0,
                data=tx.encode(plan.session_id, unstructure(created)),
                root_id=plan.session_id,
            )
        )
        return Grant(session_id=plan.session_id, turn_id="", fence=fence)

    def _place(self, tx: Transaction, copy: _Copy) -> None:
        plan, record = self.plan, copy.record
        for blob_id in set(_BLOB.findall(copy.data)):
            tx.execute(LOG_SQL["share_blob"], plan.session_id, blob_id)
        tx.place(
            Record(
                pos=0,
                session_id=plan.session_id,
                seq=copy.seq,
                event_id=tx.new_id("evt"),
                type=record.type,
                at=record.at,
                actor=record.actor,
                turn_id=record.turn_id,
                fence=0,
                data=copy.data,
                root_id=plan.session_id,
            )
        )

    def _complete(self, tx: Transaction, *, head: int) -> None:
        plan = self.plan
        tx.execute(TURN_SQL["disown"], plan.session_id)
        # nothing of it came from a file, but for what the origin's folders may be
        claimed = plan.folders_claimed
        birth = tx.new_id("birth")
        root_id = plan.session_id
        tx.execute(LOG_SQL["insert_imported_head"], root_id, head, birth, root_id, 0, claimed)
        tx.execute(LOG_SQL["end_import"], plan.session_id)
        tx.append(
            plan.session_id,
            SessionForked(forked_from=plan.origin, inherited=head - 1),
            actor=plan.by,
        )
        tx.decided(session_id=plan.session_id)


def _gone(session_id: str) -> CallboardError:
    return no_session(session_id)
