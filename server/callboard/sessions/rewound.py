"""What of a session's log a rewind has taken away: pure, from the events alone.

Nothing is changed or deleted. A ``session_rewound`` event says which seqs, and which prompts from
before them, count no longer; whoever makes context from the log leaves them out.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from attrs import frozen

from callboard_rpc.events import SessionRewound

from ..log.record import Record


@frozen
class Gone:
    """Seqs that count no longer. `spans` are disjoint, in order, both ends included."""

    spans: tuple[tuple[int, int], ...] = ()
    prompts: frozenset[int] = frozenset()

    @classmethod
    def of(cls, rewinds: Iterable[SessionRewound]) -> "Gone":
        """Of all rewinds of a session, in whatever order. A rewind within what a later one took away
        took away no more than that."""
        spans: list[tuple[int, int]] = []
        prompts: set[int] = set()
        for rewind in sorted(rewinds, key=lambda each: each.before_seq):
            prompts.update(rewind.prompts)
            first, last = rewind.before_seq, rewind.through_seq
            if spans and first <= spans[-1][1] + 1:
                spans[-1] = (spans[-1][0], max(spans[-1][1], last))
            else:
                spans.append((first, last))
        return cls(tuple(spans), frozenset(prompts))

    def __contains__(self, seq: int) -> bool:
        index = bisect_right(self.spans, (seq, 1 << 62)) - 1
        return (index >= 0 and seq <= self.spans[index][1]) or seq in self.prompts


def living(records: Sequence[Record]) -> Sequence[Record]:
    """The records of a session that still count: all of it, if it was never rewound."""
    rewinds: list[SessionRewound] = [r.value for r in records if r.type == "session_rewound"]
    if not rewinds:
        return records
    gone = Gone.of(rewinds)
    return [record for record in records if record.seq not in gone]
