"""Read models: sessions and turns as clients see them."""

from collections.abc import Collection, Mapping
from typing import Any

import orjson

from callboard_rpc.common import ForkedFrom, SessionId, SessionStatus, TurnId, Usage
from callboard_rpc.convert import structure_lenient
from callboard_rpc.errors import CallboardError
from callboard_rpc.sessions import Owner, Session, Turn

from ..log.faults import no_session
from ..log.log import Log
from ..log.text import quoted
from ..turns.projection import SQL as TURN_SQL
from ..turns.projection import turn_of
from .projection import SQL


def session_of(row: tuple[Any, ...]) -> Session:
    """A row of the ``session`` queries as the contract's class."""
    (
        session_id, root_id, parent_id, depth, cwd, directories, profile, mode, model, title,
        metadata, archived, pinned, closed, created_at, updated_at, _updated_pos, last_outcome,
        usage, head_seq, fence, host_id, turn_id, kind, queued, approvals, own_approvals, parked,
        forked_from, members,
    ) = row  # fmt: skip
    running = fence is not None and kind == "run"
    status: SessionStatus
    if closed:
        status = "closed"
    elif running:
        status = "waiting_approval" if own_approvals else "running"
    else:
        status = "parked" if parked else "idle"
    return Session(
        session_id=SessionId(session_id),
        root_id=SessionId(root_id),
        parent_id=parent_id,
        depth=depth,
        cwd=cwd,
        additional_directories=tuple(orjson.loads(directories)),
        profile=profile,
        mode=mode,
        model=model,
        title=title,
        metadata=None if metadata is None else orjson.loads(metadata),
        archived=bool(archived),
        pinned=bool(pinned),
        closed=bool(closed),
        created_at=created_at,
        updated_at=updated_at,
        last_outcome=last_outcome,
        usage=None if usage is None else structure_lenient(orjson.loads(usage), Usage),
        head_seq=head_seq,
        queue_length=queued,
        pending_approvals=approvals,
        active_turn_id=TurnId(turn_id) if running else None,
        owner=None if fence is None else Owner(host_id=host_id, fence=fence),
        status=status,
        forked_from=None
        if forked_from is None
        else structure_lenient(orjson.loads(forked_from), ForkedFrom),
        members=tuple(orjson.loads(members)),
    )


def refuse_unless_open(session_id: str, *, closed: bool, archived: bool) -> None:
    """Raises sessionClosed, sessionArchived."""
    if closed:
        raise CallboardError("sessionClosed", f"session {session_id} is closed; create a new one")
    if archived:
        raise CallboardError(
            "sessionArchived", f"session {session_id} is archived; unarchive it first"
        )


def _pattern(query: str) -> str:
    escaped = query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


class Reading:
    """Queries over sessions and turns; none of them waits for the writer."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def session(self, session_id: str) -> Session:
        """Raises sessionNotFound."""
        rows = await self._log.query(SQL["session"], session_id)
        if not rows:
            raise no_session(session_id)
        return session_of(rows[0])

    async def open_session(self, session_id: str) -> Session:
        """Raises sessionNotFound, sessionClosed, sessionArchived."""
        session = await self.session(session_id)
        refuse_unless_open(session_id, closed=session.closed, archived=session.archived)
        return session

    async def goes_on(self, session_id: str) -> bool:
        """Whether a turn runs, or something waits that some host will take up; in one look, since what
        waits becomes a turn at any moment. What waited already when the session was imported wakes
        nobody; the next prompt takes it along."""
        return bool(await self._log.query(TURN_SQL["goes_on"], session_id))

    async def sessions(
        self,
        *,
        cwd: str | None = None,
        status: str | None = None,
        archived: bool | None = None,
        parent: str | None = None,
        begun: bool = False,
        query: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[list[Session], int | None]:
        """Sessions, the one that changed last first; and where the next page begins. `begun` leaves out those
        that have neither a title, nor a turn, nor agents."""
        named: Mapping[str, Any] = {
            "cwd": cwd,
            "status": status,
            "archived": None if archived is None else int(archived),
            "parent": parent,
            "begun": begun,
            "query": None if query is None else _pattern(query),
            "before": (1 << 62) if before is None else before,
            "limit": limit + 1,
        }
        rows = await self._log.query_named(SQL["sessions"], named)
        page = [session_of(row) for row in rows[:limit]]
        return page, (rows[limit - 1][16] if len(rows) > limit else None)

    async def titles(
        self, session_ids: Collection[str], *, cwd: str | None = None
    ) -> dict[str, str | None]:
        """The titles of those sessions that there are, and that are in `cwd` when it is given."""
        ids = orjson.dumps(sorted(session_ids)).decode()
        return dict(await self._log.query(SQL["titles"], ids, cwd, cwd))

    async def turn(self, turn_id: str) -> Turn:
        """Raises turnNotFound."""
        rows = await self._log.query(TURN_SQL["turn"], turn_id)
        if not rows:
            raise CallboardError("turnNotFound", f"there is no turn {quoted(turn_id)}")
        return turn_of(rows[0])

    async def last_turn(self, session_id: str) -> Turn | None:
        rows = await self._log.query(TURN_SQL["last_turn"], session_id)
        return turn_of(rows[0]) if rows else None

    async def turns(
        self, session_id: str, *, after: int = -1, limit: int = 100
    ) -> tuple[list[Turn], int | None]:
        """Turns, oldest first; and the index after which the next page begins."""
        rows = await self._log.query(TURN_SQL["turns_page"], session_id, after, limit + 1)
        page = [turn_of(row) for row in rows[:limit]]
        return page, (page[-1].index if len(rows) > limit else None)
