"""Reading on in the log from a position: from memory where that reaches back far enough, else from the store."""

from .log import Log
from .record import Record
from .scope import Filter


async def onward(
    log: Log, filter: Filter, after: int, *, limit: int, max_bytes: int
) -> tuple[list[Record], int]:
    """What comes next behind `after`, at most so much, and the position that it reaches: nothing that is
    wanted lies between the last record and there."""
    # a page may hold what was committed and is not published yet: never go back behind it
    head = max(log.head, after)
    recent = log.recent(after)
    if recent is not None:
        wanted: list[Record] = []
        size = 0
        for record in recent:
            if not filter.admits(record):
                continue
            if len(wanted) == limit or (wanted and size + record.size > max_bytes):
                return wanted, wanted[-1].pos
            wanted.append(record)
            size += record.size
        return wanted, head
    records = await log.page(filter, after=after, limit=limit, max_bytes=max_bytes)
    if not records:
        return [], head
    last = records[-1].pos
    # a page may have ended by its size, so that its length does not tell whether more follows
    more = len(records) == limit or await log.page(filter, after=last, limit=1)
    return records, last if more else max(head, last)
