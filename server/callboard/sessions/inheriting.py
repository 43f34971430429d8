"""What a fork takes over of a log, and as what: pure, event by event.

The conversation is taken over: what was said and taken in, calls with their results, summaries, plans.
What is no conversation (approvals, ends of turns, changes of settings), what was rewound, and prompts
that nobody had read stay behind. Times, actors and ids stay as they were; seqs are counted anew.
"""

from bisect import bisect_right
from collections.abc import Set as AbstractSet
from typing import Any

import orjson
from attrs import define, field, frozen

from ..log.record import Record
from ..turns.projection import is_trigger
from .rewound import Gone

INHERITED = (
    "message",
    "directive",
    "ack",
    "tool_call",
    "tool_result",
    "summary",
    "prompt_updated",
    "plan_updated",
)
"""Types of events that a fork can have from its origin."""

_FIRST = 2
"""The seq of the first inherited event; the session's creation comes before it."""


@frozen(kw_only=True)
class Extent:
    """What of a log counts: not what is `gone`; prompts that were `admitted` (seqs), calls that were
    `answered` (ids)."""

    gone: Gone
    admitted: AbstractSet[int]
    answered: AbstractSet[str]


@define
class Inheritance:
    """Takes the records of a session, in order of seq, and says what they are in the fork."""

    extent: Extent
    open_calls: set[str] = field(factory=set[str])
    """Calls that were taken over, and their results not yet."""
    _taken: list[int] = field(factory=list[int])
    _places: dict[int, int] = field(factory=dict[int, int])

    @property
    def next_seq(self) -> int:
        """The seq that the next event has in the fork."""
        return _FIRST + len(self._taken)

    def take(self, record: Record) -> str | None:
        """The event's data as JSON text, as it stands at `next_seq` of the fork; None for an event that
        stays behind."""
        if record.seq in self.extent.gone:
            return None
        data = self._data(record)
        if data is not None:
            self._places[record.seq] = self.next_seq
            self._taken.append(record.seq)
        return data

    def _data(self, record: Record) -> str | None:
        match record.type:
            case "message" | "directive":
                unread = is_trigger(record) and record.seq not in self.extent.admitted
                return None if unread else record.data
            case "ack":
                return self._ack(orjson.loads(record.data))
            case "prompt_updated":
                update = orjson.loads(record.data)
                place = self._places.get(update["seq"])
                return None if place is None else _text({**update, "seq": place})
            case "tool_call":
                call_id: str = orjson.loads(record.data)["callId"]
                if call_id not in self.extent.answered:
                    return None  # nobody is ever told of it (coordination 11)
                self.open_calls.add(call_id)
                return record.data
            case "tool_result":
                call_id = orjson.loads(record.data)["callId"]
                if call_id not in self.open_calls:
                    return None
                self.open_calls.discard(call_id)
                return record.data
            case "summary":
                summary = orjson.loads(record.data)
                summary.pop("usage", None)  # it was spent by the origin
                covered = bisect_right(self._taken, summary["coversThrough"])
                return _text({**summary, "coversThrough": _FIRST - 1 + covered})
            case "plan_updated":
                return record.data
            case _:
                return None

    def _ack(self, ack: dict[str, Any]) -> str | None:
        admits = [self._places[seq] for seq in ack["admits"] if seq in self._places]
        return _text({**ack, "admits": admits}) if admits else None


def _text(value: dict[str, Any]) -> str:
    return orjson.dumps(value).decode()
