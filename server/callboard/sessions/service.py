"""What can be done with a session: the transactions behind the ``session/*`` methods."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from attrs import frozen

from callboard_rpc.common import (
    UNSET,
    Actor,
    Content,
    Effort,
    HostId,
    Json,
    Limits,
    MessageId,
    Mode,
    SessionId,
    TurnId,
    Unset,
    Usage,
)
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import (
    Author,
    CancelRequested,
    Delivery,
    Message,
    ModeChanged,
    ModelChanged,
    SessionArchived,
    SessionClosed,
    SessionCreated,
    SessionUnarchived,
    SessionUpdated,
    TriggersDropped,
)
from callboard_rpc.sessions import CancelScope, PromptOutcome, Session

from ..log.faults import no_session
from ..log.log import Log
from ..log.record import SELECT, Record
from ..log.text import all_well_formed, quoted
from ..log.transaction import Transaction
from ..turns import parking
from ..turns.finish import Ending
from ..turns.projection import SQL as TURN_SQL
from .answering import Addressing, to_whoever_is_there
from .content import checked_content, clean_title
from .dispatch import Dispatcher
from .inbox import deliveries as inbox
from .projection import SQL
from .reading import Reading, refuse_unless_open
from .state import Room

T = TypeVar("T")

Closing = Callable[[Transaction, str, Actor], None]
"""Writes what a feature has to say of a session that is closed for good, before it is."""

_STOP_WAIT_S = 15.0


@frozen(kw_only=True)
class SessionLimits:
    """How much may wait in a session, and how large a prompt may be (bytes)."""

    queue: int = 200
    prompt_bytes: int = 8 * 1024 * 1024


@frozen(kw_only=True)
class Posted:
    """A prompt that is durable. `turn_id` is the turn that has it, when there is one already. `warning` is what
    whoever has prompted should know of it."""

    record: Record
    outcome: PromptOutcome
    turn_id: str | None
    warning: str | None = None


@frozen(kw_only=True)
class Cancelled:
    turn_id: str | None
    dropped: tuple[int, ...]


class Sessions:
    """The sessions of one store. Every method that changes one is a single transaction, and works
    whichever process runs the session."""

    def __init__(
        self,
        log: Log,
        dispatcher: Dispatcher,
        reading: Reading,
        *,
        limits: SessionLimits,
        closings: Sequence[Closing] = (),
    ) -> None:
        self._log = log
        self._dispatcher = dispatcher
        self._reading = reading
        self._limits = limits
        self._closings = closings
        self._tasks: set[asyncio.Task[Any]] = set()

    async def _durably(self, work: Coroutine[Any, Any, T]) -> T:
        """Finishes `work` even when the request that asked for it is cancelled in between."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    # --- life ---

    async def create(
        self,
        *,
        cwd: str,
        profile: str,
        mode: Mode,
        by: Actor,
        model: str | None = None,
        title: str | None = None,
        additional_directories: Sequence[str] = (),
        metadata: Json | None = None,
        room: Room = Room(),  # noqa: B008 - a value
    ) -> Session:
        """A new session in an existing folder; who is in its `room` has been checked. Raises pathNotFound."""
        folder = _existing_folder(cwd)
        more = tuple(str(_existing_folder(path)) for path in additional_directories)

        def commit(tx: Transaction) -> str:
            session_id = tx.new_id("ses")
            tx.begin_session(session_id, session_id)
            tx.append(
                session_id,
                SessionCreated(
                    session_id=SessionId(session_id),
                    root_id=SessionId(session_id),
                    cwd=str(folder),
                    additional_directories=more,
                    profile=profile,
                    mode=mode,
                    model=model,
                    title=clean_title(title),
                    metadata=all_well_formed(metadata),
                    members=room.members,
                    host=room.host,
                    burst_budget=room.burst_budget,
                ),
                actor=by,
            )
            tx.decided(session_id=session_id)
            return session_id

        return await self._reading.session(await self._log.transact(commit))

    async def update(
        self,
        session_id: str,
        *,
        by: Actor,
        title: str | Unset | None = UNSET,
        pinned: bool | Unset = UNSET,
        metadata: Json | Unset | None = UNSET,
        mode: Mode | Unset = UNSET,
        model: str | Unset | None = UNSET,
        burst_budget: int | Unset | None = UNSET,
        if_unchanged_since: int | None = None,
        effort: Effort | Unset | None = UNSET,
        options: Mapping[str, Mapping[str, str | None]] | None = None,
    ) -> Session:
        """Changes what is given; a turn that runs sees the new mode at its next call. `options` are by agent, as
        `offers.patch_of` makes them.

        Raises sessionChanged when another update came after the event `if_unchanged_since`."""
        changes: Json = {}
        if not isinstance(title, Unset):
            changes["title"] = clean_title(title)
        if not isinstance(pinned, Unset):
            changes["pinned"] = pinned
        if not isinstance(metadata, Unset):
            changes["metadata"] = all_well_formed(metadata)
        if not isinstance(burst_budget, Unset):
            changes["burstBudget"] = burst_budget
        if not isinstance(effort, Unset):
            changes["effort"] = effort
        if options:
            changes["options"] = {agent: dict(values) for agent, values in options.items()}

        def commit(tx: Transaction) -> None:
            _must_exist(tx, session_id)
            if if_unchanged_since is not None:
                _must_be_unchanged(tx, session_id, if_unchanged_since)
            if changes:
                tx.append(session_id, SessionUpdated(changes=changes), actor=by)
            if not isinstance(mode, Unset):
                tx.append(session_id, ModeChanged(mode=mode), actor=by)
            if not isinstance(model, Unset):
                tx.append(session_id, ModelChanged(model=model), actor=by)
            tx.decided(session_id=session_id)

        await self._log.transact(commit)
        return await self._reading.session(session_id)

    async def set_archived(self, session_id: str, *, archived: bool, by: Actor) -> Session:
        """Hides a session from lists, or shows it again. Doing it twice writes nothing."""

        def commit(tx: Transaction) -> None:
            _, is_archived = _must_exist(tx, session_id)
            if is_archived != archived:
                tx.append(
                    session_id, SessionArchived() if archived else SessionUnarchived(), actor=by
                )
            tx.decided(session_id=session_id)

        await self._log.transact(commit)
        return await self._reading.session(session_id)

    async def close(self, session_id: str, *, by: Actor, reason: str | None = None) -> Session:
        """Ends a session and those below it for good. Their turns are stopped first."""
        return await self._durably(self._close(session_id, by, reason))

    async def _close(self, session_id: str, by: Actor, reason: str | None) -> Session:
        why = reason or "the session was closed"

        def commit(tx: Transaction, ids: Sequence[str]) -> None:
            _must_exist(tx, session_id)
            for each in ids:
                flags = tx.one(SQL["flags"], each)
                if flags is not None and not flags[0]:
                    inbox.drop_all(tx, each, by=by, reason=why)
                    for closing in self._closings:
                        closing(tx, each, by)
                    tx.append(each, SessionClosed(reason=reason), actor=by)
            tx.decided(session_id=session_id)

        await self._quietly(session_id, by, why, commit)
        return await self._reading.session(session_id)

    async def delete(self, session_id: str, *, by: Actor) -> bool:
        """Stops, then deletes a session and those below it. False for one that is not there."""
        return await self._durably(self._delete(session_id, by))

    async def _delete(self, session_id: str, by: Actor) -> bool:
        deleted = False

        def commit(tx: Transaction, ids: Sequence[str]) -> None:
            nonlocal deleted
            for each in ids:
                deleted = tx.delete_session(each, actor=by)
            tx.decided(session_id=session_id)

        await self._quietly(session_id, by, "the session was deleted", commit)
        return deleted

    async def _quietly(
        self,
        session_id: str,
        by: Actor,
        reason: str,
        commit: Callable[[Transaction, Sequence[str]], None],
    ) -> None:
        """Runs `commit` for a session and those below it (the lowest first) when none of their turns
        runs anywhere and nothing waits that could start one: turns are stopped, queues dropped.

        A prompt that comes in between starts a turn that is stopped, too; after so many such turns, or
        when one does not end in time, it is done all the same, and the turn's fence ends it."""
        deadline = time.monotonic() + _STOP_WAIT_S
        while True:
            ids = [*reversed(await self._descendants(session_id)), session_id]

            def decide(tx: Transaction, ids: list[str] = ids) -> bool:
                late = time.monotonic() >= deadline
                if not late and any(_running_turn(tx, each) for each in ids):
                    return False
                for each in ids:
                    # who summarises it, or the like, finds that it is not theirs any more
                    tx.execute(TURN_SQL["end_preparation"], each)
                    if tx.one(SQL["flags"], each) is not None:
                        self._end_parked(tx, each, by, reason)
                        _drop_queue(tx, each, by, reason)
                commit(tx, ids)
                return True

            if await self._log.transact(decide):
                return
            await self._stop(ids, by, reason, deadline - time.monotonic())

    def _end_parked(self, tx: Transaction, session_id: str, by: Actor, reason: str) -> str | None:
        """Ends a turn that waits, run by nobody, for an approval; its id if there was one."""
        ending = Ending(outcome="cancelled", usage=Usage(partial=True), by=by, reason=reason)
        return parking.end_parked(
            tx, session_id, self._dispatcher.host_id, ending, hooks=self._dispatcher.hooks
        )

    async def _descendants(self, session_id: str) -> list[str]:
        return [row[0] for row in await self._log.query(SQL["descendants"], session_id)]

    async def _stop(
        self, session_ids: Sequence[str], by: Actor, reason: str, within_s: float
    ) -> None:
        """Drops what waits in these sessions, asks whoever runs their turns to stop, and waits for
        their ends."""

        def ask(tx: Transaction) -> None:
            for each in session_ids:
                if tx.one(SQL["flags"], each) is None:
                    continue
                _drop_queue(tx, each, by, reason)
                running = _running_turn(tx, each)
                if running is not None:
                    _ask_to_stop(tx, each, running, "turn", by, reason)

        await self._log.transact(ask)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, within_s)):
                while True:
                    position = self._log.head
                    owned = {row[0] for row in await self._log.query(TURN_SQL["live_owners"])}
                    if owned.isdisjoint(session_ids):
                        return
                    await self._log.moved(position)

    # --- prompting ---

    async def prompt(
        self,
        session_id: str,
        content: Sequence[Content],
        *,
        author: Author,
        by: Actor,
        delivery: Delivery = "auto",
        client_message_id: str | None = None,
        addressing: Addressing = to_whoever_is_there,
        limits: Limits | None = None,
        meta: Json | None = None,
    ) -> Posted:
        """Appends a prompt and wakes the session. Nothing is refused because the agent is busy.

        The same `client_message_id` again returns the first prompt's answer. Raises sessionNotFound,
        sessionClosed, sessionArchived, queueFull, messageTooLarge, invalidParams, and what `addressing` does.
        """
        checked = checked_content(content, self._limits.prompt_bytes, meta)
        return await self._durably(
            self._prompt(
                session_id,
                checked,
                author,
                by,
                delivery,
                client_message_id,
                addressing,
                limits,
                meta,
            )
        )

    async def _prompt(
        self,
        session_id: str,
        content: tuple[Content, ...],
        author: Author,
        by: Actor,
        delivery: Delivery,
        client_message_id: str | None,
        addressing: Addressing,
        limits: Limits | None,
        meta: Json | None,
    ) -> Posted:
        warning: str | None = None

        def commit(tx: Transaction) -> tuple[Record, str | None, bool, bool]:
            nonlocal warning
            _must_be_open(tx, session_id)
            if client_message_id is not None:
                first = _first_of(tx, session_id, client_message_id)
                if first is not None:
                    tx.decided(session_id=session_id, seq=first[0].seq, behind=None, warning=None)
                    return (*first, True)
            owner = tx.one(TURN_SQL["owner"], session_id)
            running = owner[3] if owner is not None and owner[1] is not None else None
            waiting = len(tx.all(TURN_SQL["pending_triggers"], session_id))
            if waiting >= self._limits.queue:
                raise CallboardError(
                    "queueFull",
                    f"session {session_id} has {waiting} prompts waiting; cancel some "
                    "(session/cancel with scope 'queue'), or wait",
                    retry_after_ms=5_000,
                )
            addressed = addressing(tx, session_id, running)
            warning = addressed.warning
            finalizing = owner is not None and owner[5] == "finalizing"
            steers = (
                delivery == "steer" and running is not None and not finalizing and addressed.joins
            )
            record = tx.append(
                session_id,
                Message(
                    message_id=MessageId(tx.new_id("msg")),
                    author=author,
                    content=content,
                    delivery="steer" if steers else "queue",
                    client_message_id=client_message_id,
                    to=addressed.to,
                    limits=limits,
                    host_id=HostId(self._dispatcher.host_id),
                    meta=all_well_formed(meta),
                ),
                actor=by,
            )
            tx.decided(session_id=session_id, seq=record.seq, behind=running, warning=warning)
            return record, running, steers, False

        # The prompt and what it starts wait for the writer together, and so share one commit.
        appended = self._log.submit(commit)
        try:
            turn_id = await self._dispatcher.wake_here(session_id)
        except Exception:
            # what keeps the prompt out is told before what keeps its turn from starting; and whoever has
            # asked for it with a key hears of no failure before it is written down under that key
            await appended
            raise
        record, running, steers, repeated = await appended
        if repeated:
            return Posted(
                record=record, outcome="queued" if running is None else "started", turn_id=running
            )
        if steers:
            return Posted(record=record, outcome="steered", turn_id=running, warning=warning)
        if turn_id is not None and not self._is_in(record, turn_id):
            turn_id = (
                None  # what began is the turn of something that came before, and has one for itself
            )
        return Posted(
            record=record,
            outcome="queued" if turn_id is None else "started",
            turn_id=turn_id,
            warning=warning,
        )

    def _is_in(self, record: Record, turn_id: str) -> bool:
        """Whether a turn has taken a prompt in."""
        rows = self._log.glance(TURN_SQL["trigger"], record.session_id, record.seq)
        return bool(rows) and rows[0][1] == turn_id

    # --- stopping ---

    async def cancel(
        self,
        session_id: str,
        *,
        by: Actor,
        scope: CancelScope = "turn",
        turn_id: str | None = None,
        reason: str | None = None,
    ) -> Cancelled:
        """Asks the running turn to stop, drops what waits, or both for a whole tree.

        The wish is committed, and whoever runs the turn that it names hears of it by the commit.
        Raises turnMismatch when another turn than `turn_id` runs, turnNotFound when there never was
        one of that id.
        """
        return await self._durably(self._cancel(session_id, by, scope, turn_id, reason))

    async def _cancel(
        self,
        session_id: str,
        by: Actor,
        scope: CancelScope,
        turn_id: str | None,
        reason: str | None,
    ) -> Cancelled:
        ids = [session_id]
        parked: list[str] = []
        if scope == "tree":
            ids += await self._descendants(session_id)

        def commit(tx: Transaction) -> tuple[str | None, tuple[int, ...]]:
            _must_exist(tx, session_id)
            stopped: str | None = None
            dropped: tuple[int, ...] = ()
            for each in ids:
                running = _running_turn(tx, each) or tx.value(TURN_SQL["parked_turn"], each)
                if each == session_id and turn_id is not None:
                    _must_match(tx, session_id, turn_id, running)
                if scope != "queue" and running is not None:
                    _ask_to_stop(tx, each, running, scope, by, reason)
                    stopped = running if each == session_id else stopped
                    if self._end_parked(tx, each, by, reason or "the turn was cancelled"):
                        parked.append(each)
                if scope != "turn":
                    gone = _drop_queue(tx, each, by, reason or "cancelled")
                    dropped = gone if each == session_id else dropped
            tx.decided(turn_id=stopped, dropped=dropped)
            return stopped, dropped

        stopped, dropped = await self._log.transact(commit)
        for each in parked:
            await self._dispatcher.wake(each)  # what waited behind the turn is next
        return Cancelled(turn_id=stopped, dropped=dropped)


# --- pieces of transactions -------------------------------------------------------------------------


def _must_exist(tx: Transaction, session_id: str) -> tuple[bool, bool]:
    """Whether the session is closed, and whether archived. Raises sessionNotFound."""
    row = tx.one(SQL["flags"], session_id)
    if row is None:
        raise no_session(session_id)
    return bool(row[0]), bool(row[1])


def _must_be_unchanged(tx: Transaction, session_id: str, since: int) -> None:
    row = tx.one(SQL["updated_after"], session_id, since)
    if row is not None:
        raise CallboardError(
            "sessionChanged",
            f"session {session_id} was changed at seq {row[0]}, after it was read at seq {since}; read it again",
            data={"seq": row[0]},
        )


def _must_be_open(tx: Transaction, session_id: str) -> None:
    closed, archived = _must_exist(tx, session_id)
    refuse_unless_open(session_id, closed=closed, archived=archived)


def _running_turn(tx: Transaction, session_id: str) -> str | None:
    """The turn that some host runs now."""
    owner = tx.one(TURN_SQL["owner"], session_id)
    return None if owner is None or owner[1] is None else owner[3]


def _ask_to_stop(
    tx: Transaction,
    session_id: str,
    turn_id: str,
    scope: CancelScope,
    by: Actor,
    reason: str | None,
) -> None:
    tx.append(
        session_id,
        CancelRequested(scope=scope, turn_id=TurnId(turn_id), reason=reason),
        actor=by,
        turn_id=turn_id,
    )


def _must_match(tx: Transaction, session_id: str, turn_id: str, running: str | None) -> None:
    if turn_id == running:
        return
    row = tx.one(TURN_SQL["turn"], turn_id)
    if row is None or row[1] != session_id:
        raise CallboardError(
            "turnNotFound", f"session {session_id} never had a turn {quoted(turn_id)}"
        )
    if running is not None:
        raise CallboardError(
            "turnMismatch",
            f"turn {turn_id} has ended; {running} is the one that runs now",
            data={"actual": running},
        )


def _drop_queue(tx: Transaction, session_id: str, by: Actor, reason: str) -> tuple[int, ...]:
    seqs = tuple(seq for seq, _, _ in tx.all(TURN_SQL["pending_triggers"], session_id))
    # what is muted wakes nobody any more: whoever waits for the session to rest has to hear of it, too
    if inbox.mute(tx, session_id) or seqs:
        tx.append(session_id, TriggersDropped(seqs=seqs, reason=reason), actor=by)
    return seqs


def _first_of(
    tx: Transaction, session_id: str, client_message_id: str
) -> tuple[Record, str | None, bool] | None:
    row = tx.one(TURN_SQL["trigger_by_client_message"], session_id, client_message_id)
    if row is None:
        return None
    seq, _, turn_id = row
    event = tx.one(f"{SELECT} WHERE session_id = ? AND seq = ?", session_id, seq)
    assert event is not None
    return Record.of(event), turn_id, False


# --- checks of values -------------------------------------------------------------------------------


def _existing_folder(path: str) -> Path:
    folder = Path(path)
    if not folder.is_absolute() or "\x00" in path:
        raise CallboardError(
            "invalidParams",
            f"{path[:200]!r} is not an absolute path",
            data={"errors": [{"path": "$.cwd", "message": "must be an absolute path"}]},
        )
    try:
        resolved = folder.resolve(strict=True)
    except (OSError, RuntimeError) as fault:
        raise CallboardError(
            "pathNotFound", f"there is no folder {path[:200]}", data={"path": path}
        ) from fault
    if not resolved.is_dir():
        raise CallboardError("pathNotFound", f"{path[:200]} is not a folder", data={"path": path})
    return resolved
