"""One event as the log keeps it: an envelope in columns, and its data as JSON text."""

from typing import Any

import orjson

from callboard_rpc.common import Actor
from callboard_rpc.convert import structure_lenient
from callboard_rpc.events import EVENT_TYPES, Event, UnknownData

_COLUMNS = "pos, session_id, seq, event_id, type, at, actor, turn_id, fence, data"
SELECT = f"SELECT {_COLUMNS} FROM events"
"""How every query of the log begins; `Record.of` reads its rows."""
OUTLINE = SELECT.replace(
    " data FROM",
    " CASE WHEN type IN (SELECT value FROM json_each(?)) THEN data ELSE '{}' END FROM",
)
"""The same with the data of some types only, which are its first parameter, a list in JSON."""


class Record:
    """A committed event. `actor` and `data` are JSON text; `value` is the data as its class.

    A plain class with slots: thousands of them are made in a second.
    """

    __slots__ = (
        "_value", "actor", "at", "data", "event_id", "fence", "pos", "root_id", "seq",
        "session_id", "turn_id", "type",
    )  # fmt: skip

    def __init__(
        self,
        pos: int,
        session_id: str,
        seq: int,
        event_id: str,
        type: str,
        at: str,
        actor: str,
        turn_id: str | None,
        fence: int,
        data: str,
        value: Any = None,
        root_id: str | None = None,
    ) -> None:
        self.pos = pos
        self.session_id = session_id
        self.seq = seq
        self.event_id = event_id
        self.type = type
        self.at = at
        self.actor = actor
        self.turn_id = turn_id
        self.fence = fence
        self.data = data
        self._value = value
        self.root_id = root_id

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> "Record":
        """From a row of `SELECT`; a further column is the root's id."""
        if len(row) > 10:
            return cls(*row[:10], root_id=row[10])
        return cls(*row)

    @property
    def value(self) -> Any:
        """The data as its class of `callboard_rpc.events`, or `UnknownData`."""
        if self._value is None:
            raw = orjson.loads(self.data)
            cls = EVENT_TYPES.get(self.type)
            self._value = (
                UnknownData(type=self.type, data=raw)
                if cls is None
                else structure_lenient(raw, cls)
            )
        return self._value

    @property
    def by(self) -> Actor:
        """Who caused it."""
        return structure_lenient(orjson.loads(self.actor), Actor)

    def event(self) -> Event:
        """The event as the contract's class."""
        return Event(
            pos=self.pos,
            session_id=self.session_id,  # pyright: ignore[reportArgumentType]
            seq=self.seq,
            event_id=self.event_id,  # pyright: ignore[reportArgumentType]
            type=self.type,
            at=self.at,
            actor=self.by,
            data=self.value,
            turn_id=self.turn_id,  # pyright: ignore[reportArgumentType]
        )

    def wire(self) -> dict[str, Any]:
        """The event for an orjson encoder; the stored JSON goes out as it is, without being parsed."""
        envelope: dict[str, Any] = {
            "pos": self.pos,
            "sessionId": self.session_id,
            "seq": self.seq,
            "eventId": self.event_id,
            "type": self.type,
            "at": self.at,
            "actor": orjson.Fragment(self.actor),
            "data": orjson.Fragment(self.data),
        }
        if self.turn_id is not None:
            envelope["turnId"] = self.turn_id
        return envelope

    @property
    def size(self) -> int:
        """About how many bytes it takes on the wire."""
        return len(self.data) + len(self.actor) + 240
