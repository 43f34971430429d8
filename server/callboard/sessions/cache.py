"""Sessions as this process knows them: frozen states to read, transcripts for the turns that run.

`read` is one dictionary look-up without a lock, an await or I/O; what it returns never changes. A
transcript follows the log while its session is used and is forgotten when it has not been for long.
"""

from collections import OrderedDict
from collections.abc import Sequence

from attrs import define

from callboard_rpc.common import Mode
from callboard_rpc.convert import structure_lenient
from callboard_rpc.events import EVENT_TYPES

from ..log.faults import no_session
from ..log.log import Log
from ..log.record import Record
from .state import SessionState, apply
from .transcript import SPOKEN_TYPES, Transcript

_TRANSCRIPTS = 64
MAX_DEPTH = 64
"""How far up a session's line is followed."""


@define
class _Known:
    state: SessionState
    seq: int


class SessionCache:
    """The sessions that this process has seen, kept current by the log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: dict[str, _Known] = {}
        self._transcripts: OrderedDict[tuple[str, bool], Transcript] = OrderedDict()
        """By session, and whether its calls are in it."""
        self._reading: list[tuple[str, list[Record]]] = []
        """Sessions that are read just now, each with what is committed meanwhile."""
        log.listen(self._heard)
        log.feed.on_skip(self._forget_all)

    def read(self, session_id: str) -> SessionState | None:
        """The last committed state, or None when it is not cached. Never loads (execution 41)."""
        known = self._known.get(session_id)
        return None if known is None else known.state

    def _forget_all(self) -> None:
        self._known.clear()
        self._transcripts.clear()

    def _heard(self, records: list[Record]) -> None:
        for record in records:
            for session_id, meanwhile in self._reading:
                if session_id == record.session_id:
                    meanwhile.append(record)
            if record.type == "session_deleted":
                self._known.pop(record.session_id, None)
                self.forget(record.session_id)
                continue
            self._follow_state(record)
            if record.type == "session_rewound":
                # what a summary stood for may be context again: it is made anew when it is needed
                self.forget(record.session_id)
                continue
            for key in ((record.session_id, True), (record.session_id, False)):
                transcript = self._transcripts.get(key)
                if transcript is not None:
                    if record.seq == transcript.seq + 1:
                        transcript.apply(record)
                    elif record.seq > transcript.seq:
                        # another process wrote in between: read anew when it is needed
                        del self._transcripts[key]

    def _follow_state(self, record: Record) -> None:
        known = self._known.get(record.session_id)
        if record.type in ("session_created", "agent_spawned"):
            state = apply(None, record.value)
            if state is not None:
                self._known[record.session_id] = _Known(state, record.seq)
        elif known is not None:
            if record.seq == known.seq + 1:
                state = known.state
                if _tells(record, state):
                    state = apply(state, record.value) or state
                self._known[record.session_id] = _Known(state, record.seq)
            elif record.seq > known.seq:
                del self._known[record.session_id]

    async def state(self, session_id: str) -> SessionState:
        """The state, loaded when it is not cached. Raises sessionNotFound."""
        known = self._known.get(session_id)
        if known is not None:
            return known.state
        records = await self._records(session_id, _STATE_TYPES | {"message"})
        state: SessionState | None = None
        for record in records:
            if _tells(record, state):
                state = apply(state, record.value)
        if state is None:
            raise no_session(session_id)
        self._known[session_id] = _Known(state, records[-1].seq)
        return state

    async def above(self, state: SessionState) -> tuple[str, ...]:
        """The sessions above one, its parent first, up to the root. Raises sessionNotFound."""
        line: list[str] = []
        while state.parent_id is not None and len(line) < MAX_DEPTH:
            line.append(state.parent_id)
            state = await self.state(state.parent_id)
        return tuple(line)

    async def modes(self, session_ids: Sequence[str]) -> list[Mode]:
        """The modes of sessions as they are now. Raises sessionNotFound."""
        modes: list[Mode] = []
        for each in session_ids:
            modes.append((await self.state(each)).mode)
        return modes

    async def _records(self, session_id: str, whole: frozenset[str] | None = None) -> list[Record]:
        """All records of a session, those too that were committed while it was read; `whole` are the types whose data
        are needed, if not all are."""
        while True:
            meanwhile: list[Record] = []
            self._reading.append((session_id, meanwhile))
            try:
                records = (
                    await self._log.session(session_id)
                    if whole is None
                    else await self._log.outline(session_id, whole)
                )
            finally:
                self._reading = [each for each in self._reading if each[1] is not meanwhile]
            seq = records[-1].seq if records else 0
            later = [record for record in meanwhile if record.seq > seq]
            if any(record.type == "session_deleted" for record in later):
                return []
            if [record.seq for record in later] == list(range(seq + 1, seq + 1 + len(later))):
                return records + later
            # another process wrote in between

    async def transcript(self, session_id: str, *, calls: bool = True) -> Transcript:
        """The session's transcript, large values whole; without its calls, only what was said. What other processes wrote since shows by a
        gap in the seqs of the next record of our own, and is then read anew."""
        transcript = self._transcripts.get((session_id, calls))
        if transcript is None:
            transcript = await self._load(session_id, calls=calls)
        self._transcripts.move_to_end((session_id, calls))
        while transcript.large:
            record = transcript.large[0]
            whole = structure_lenient(await self._log.whole(record), EVENT_TYPES[record.type])
            transcript.complete(record, whole)
            # only now: whoever is cancelled above must leave it to be done
            if transcript.large and transcript.large[0] is record:
                del transcript.large[0]
        return transcript

    async def _load(self, session_id: str, *, calls: bool) -> Transcript:
        records = await self._records(session_id, None if calls else SPOKEN_TYPES)
        transcript = Transcript.of(records, calls=calls)
        self._transcripts[session_id, calls] = transcript
        while len(self._transcripts) > _TRANSCRIPTS:
            self._transcripts.popitem(last=False)
        return transcript

    def forget(self, session_id: str) -> None:
        """Drops the transcript of a session that is not running any more."""
        for calls in (True, False):
            self._transcripts.pop((session_id, calls), None)


_STATE_TYPES = frozenset(
    {
        "session_created", "agent_spawned", "session_updated", "session_archived", "session_unarchived",
        "session_closed", "mode_changed", "model_changed", "member_added", "member_removed",
        "room_host_changed", "external_options",
    }
)  # fmt: skip


def _tells(record: Record, state: SessionState | None) -> bool:
    """Whether a record can change the state; most cannot, and are not even decoded."""
    if record.type == "message":
        return state is not None and state.title is None
    return record.type in _STATE_TYPES
