"""An exported session, line by line, played into a scratch store; and what was under way in it, ended.

Runs in a thread of its own and touches nothing of the store. All that is wrong with the file is found here.
"""

import hashlib
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, Final, cast

from attrs import define, field, frozen

from callboard_rpc.common import AskId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentInterrupted, AgentReplied, TriggersDropped

from ..log.faults import store_error
from ..log.importing import Scratch
from ..log.transaction import Transaction
from ..turns.finish import Ending, close_turn
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import SYSTEM, Grant
from ..turns.usage import reported
from .transfer import (
    BlobPiece,
    Header,
    Lines,
    Refused,
    blob_of,
    chained,
    closing_of,
    header_of,
    parsed,
)
from .vetting import Vetted, Vetting

_BLOB_LIMIT: Final = 256 * 1024 * 1024
"""Bytes of one blob."""
_TOLD_EVERY = 500
"""Events between two words on how far it is."""

_REASON = "the session was exported while this turn was under way, and imported again"
ADRIFT = "it was at work when it was exported; continue it"
"""Why an agent rests that was under way in the store that its file came from."""


class Stopped(Exception):
    """Nobody wants the import any more."""


@frozen(kw_only=True)
class Wanted:
    """What is to become of the file. `session_id` is the new session's id, None for the file's own;
    `folder` is where the session is to work, None for where the file says."""

    session_id: str | None = None
    folder: str | None = None


@frozen(kw_only=True)
class Played:
    """What lies in the scratch store now. `events` came from the file, up to `head` is all there is."""

    session_id: str
    exported_id: str
    root_id: str
    parent_id: str | None
    depth: int
    folder: str
    events: int
    head: int
    turns: tuple[str, ...]
    approvals: tuple[str, ...]
    calls: frozenset[str]


@define(kw_only=True)
class _Player:
    scratch: Scratch
    wanted: Wanted
    stop: threading.Event
    tell: Callable[[int, int], None]
    header: Header = field(factory=lambda: Header(session_id="", events=0))
    vetting: Vetting = field(factory=lambda: Vetting(session_id=""))
    digest: str = ""
    renamed: dict[str, str] = field(factory=dict[str, str])
    """Ids that become others: of a copy all that are its own, and those of blobs that held a secret."""
    closed: bool = False
    _blob: bytearray = field(factory=bytearray)
    _blob_id: str | None = None

    @property
    def session_id(self) -> str:
        return self.wanted.session_id or self.header.session_id

    def line(self, line: bytes) -> None:
        if self.closed:
            raise Refused("follows the last line of the export")
        value = parsed(line)
        if not self.header.events:
            self._begin(value)
        elif self._blob_id is not None and "blob" not in value:
            raise Refused("comes before the rest of a blob")
        elif "end" in value and len(value) == 1:
            self._end(value)
            return
        elif "blob" in value and len(value) == 1:
            self._take(blob_of(value))
        else:
            self._play(self.vetting.event(value))
        self.digest = chained(self.digest, line)

    def _begin(self, value: dict[str, Any]) -> None:
        self.header = header_of(value)
        self.vetting = Vetting(session_id=self.header.session_id)
        if self.wanted.session_id is not None:
            self.renamed[self.header.session_id] = self.wanted.session_id

    def _play(self, event: Vetted) -> None:
        if self.stop.is_set():
            raise Stopped
        if self.vetting.seq > self.header.events:
            raise Refused("is an event more than the first line says")
        tx = self.scratch.tx
        if event.seq == 1:
            created = self.vetting.created
            assert created is not None
            if self.wanted.session_id is not None and created.parent_id is not None:
                raise Refused(
                    "creates a child of another session, which cannot be imported as a new session; "
                    "import it under its own id, after its parent"
                )
            tx.begin_session(self.session_id, self._new(created.root_id))
        if self.wanted.session_id is not None:
            self._name_anew(event)
        data: dict[str, Any] = event.data
        actor = event.actor
        if self.renamed:
            data, actor = renamed(data, self.renamed), renamed(actor, self.renamed)
        if event.seq == 1 and self.wanted.folder is not None:
            data = data | {"cwd": self.wanted.folder, "additionalDirectories": list[str]()}
        try:
            tx.restore(
                self.session_id,
                event_id=self._new(event.event_id),
                kind=event.type,
                at=event.at,
                actor=actor,
                turn_id=None if event.turn_id is None else self._new(event.turn_id),
                data=data,
            )
        except RecursionError:
            raise Refused("is nested too deeply") from None
        except CallboardError:
            raise
        except Exception as fault:
            named = store_error(fault, tx.writing.path)
            if named is not None:
                raise named from fault
            raise Refused(f"cannot be part of this session ({type(fault).__name__})") from fault
        tx.appended.clear()
        if event.seq % _TOLD_EVERY == 0:
            self.tell(event.seq, self.header.events)

    def _new(self, known: str) -> str:
        return self.renamed.get(known, known)

    def _name_anew(self, event: Vetted) -> None:
        """Gives a copy ids of its own, so that both sessions can be in one store."""
        for known in self.vetting.own_ids:
            if known not in self.renamed:
                prefix = known.partition("_")[0]
                self.renamed[known] = self.scratch.tx.new_id(prefix)
        self.vetting.own_ids.clear()

    # --- blobs ---

    def _take(self, piece: BlobPiece) -> None:
        if piece.missing:
            self.vetting.blobs.add(piece.blob_id)
            return
        if piece.blob_id != self._blob_id:
            if self._blob_id is not None:
                raise Refused("begins a blob before the one before it is whole")
            self._blob_id = piece.blob_id
        if piece.offset != len(self._blob) or not 0 <= piece.size <= _BLOB_LIMIT:
            raise Refused("has a piece of a blob that is too large, or out of order")
        self._blob += piece.data
        if len(self._blob) > piece.size or (not piece.data and piece.size > len(self._blob)):
            raise Refused("has a piece of a blob that does not fit its size")
        if len(self._blob) == piece.size:
            self._keep(piece)

    def _keep(self, piece: BlobPiece) -> None:
        data = bytes(self._blob)
        self._blob.clear()
        self._blob_id = None
        if f"blob_{hashlib.sha256(data).hexdigest()}" != piece.blob_id:
            raise Refused("completes a blob whose content is not what its id says")
        if piece.mime_type.startswith("text/"):
            data = self.scratch.clean(data)
        kept = self.scratch.tx.put_blob(self.session_id, data, piece.mime_type)
        if kept.blob_id != piece.blob_id:
            self.renamed[piece.blob_id] = kept.blob_id
        self.vetting.blobs.add(piece.blob_id)

    # --- the end ---

    def _end(self, value: dict[str, Any]) -> None:
        closing = closing_of(value)
        if closing.events != self.header.events or self.vetting.seq != self.header.events:
            raise Refused(
                f"ends the export after {self.vetting.seq} events; the first line says "
                f"{self.header.events}: some are missing"
            )
        if closing.digest != self.digest:
            raise Refused("has another digest than the lines before it: the file was changed")
        self.closed = True

    def settled(self) -> Played:
        """Ends what was under way when the session was exported, as after a crash: nothing reruns."""
        created = self.vetting.created
        assert created is not None
        tx = self.scratch.tx
        if self.vetting.turn is not None:
            turn_id = self._new(self.vetting.turn.turn_id)
            grant = Grant(session_id=self.session_id, turn_id=turn_id, fence=0)
            ending = Ending(
                outcome="interrupted", usage=reported(tx, self.session_id, turn_id), reason=_REASON
            )
            close_turn(tx, grant, ending, actor=SYSTEM, hooks=(self._end_agent_in,))
        else:
            self._end_agent(tx, None)
        self._drop_fires(tx)
        return Played(
            session_id=self.session_id,
            exported_id=self.header.session_id,
            root_id=self._new(created.root_id),
            parent_id=created.parent_id,
            depth=created.depth,
            folder=self.wanted.folder or created.cwd,
            events=self.header.events,
            head=self.scratch.head(self.session_id),
            turns=tuple(self._new(each) for each in self.vetting.started),
            approvals=tuple(self._new(each) for each in self.vetting.approvals),
            calls=frozenset(self._new(each) for each in self.vetting.calls),
        )

    def _drop_fires(self, tx: Transaction) -> None:
        """The schedules that have fired in the session are another store's, and wake nobody here, with the next
        prompt neither."""
        pending = tx.all(TURN_SQL["pending_triggers"], self.session_id)
        seqs = tuple(seq for seq, kind, _ in pending if kind == "schedule")
        if seqs:
            dropped = TriggersDropped(seqs=seqs, reason="its schedule is not of this store")
            tx.append(self.session_id, dropped, actor=SYSTEM)

    def _end_agent_in(self, tx: Transaction, grant: Grant, _: Ending) -> None:
        self._end_agent(tx, grant.turn_id)

    def _end_agent(self, tx: Transaction, turn_id: str | None) -> None:
        """An agent that was under way rests, and waits for no answer: no clock of this store, and no turn
        that begins here, goes by what it was told, and asked, elsewhere."""
        agent = self.vetting.agent
        ends: list[AgentReplied | AgentInterrupted] = [
            AgentReplied(ask_id=AskId(each), outcome="parent_restarted")
            for each in sorted(agent.open_asks)
        ]
        if agent.at_work:
            ends.append(AgentInterrupted(reason=ADRIFT))
        for event in ends:
            tx.append(self.session_id, event, actor=SYSTEM, turn_id=turn_id)


def play(
    file: BinaryIO,
    scratch: Scratch,
    *,
    wanted: Wanted,
    stop: threading.Event,
    tell: Callable[[int, int], None],
) -> Played:
    """Plays a whole file. `tell` hears how many of how many events there are.

    Raises importRefused, which names the line; store errors, when there is no room for the scratch
    store; and `Stopped`, soon after `stop` is set.
    """
    player = _Player(scratch=scratch, wanted=wanted, stop=stop, tell=tell)
    lines = Lines(file)
    try:
        for line in lines:
            player.line(line)
        lines.number += 1
        if not player.closed:
            raise Refused(
                "is missing: the file ends before the last line of the export, so it was cut off; "
                "export the session again"
            )
        return player.settled()
    except Refused as refused:
        raise CallboardError(
            "importRefused",
            f"line {lines.number} {refused.why}. Nothing was imported",
            data={"line": lines.number},
        ) from None


def renamed(value: Any, ids: dict[str, str]) -> Any:
    """A JSON value in which every text that is one of `ids` is another one."""
    match value:
        case str():
            return ids.get(value, value)
        case dict():
            fields = cast("dict[str, Any]", value)
            return {key: renamed(item, ids) for key, item in fields.items()}
        case list():
            return [renamed(item, ids) for item in cast("list[Any]", value)]
        case _:
            return value
