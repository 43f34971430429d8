"""``session/fork``, ``session/rewind`` and ``session/queue*``."""

from typing import Any

from callboard_rpc.events import Author
from callboard_rpc.history import (
    QueuedPrompt,
    SessionForkParams,
    SessionQueueParams,
    SessionQueueRemoveParams,
    SessionQueueResult,
    SessionQueueUpdateParams,
    SessionRewindParams,
    SessionRewindResult,
)
from callboard_rpc.sessions import SessionResult

from ...host import Host
from ...log.record import Record
from ..call import Call, Handler
from ..pages import number, page_size, sized, text
from .client import Clients, actor_of
from .remade import rewound


def handlers(host: Host, clients: Clients) -> dict[str, Handler]:
    limits = host.settings.limits

    def changed(record: Record) -> SessionQueueResult:
        return SessionQueueResult(event_seq=record.seq, cursor=host.log.cursor(record.pos))

    async def fork(call: Call, params: SessionForkParams) -> SessionResult:
        with clients.of(call).subscriptions.held(call):
            session = await host.forking.fork(
                params.session_id,
                at_turn_id=params.at_turn_id,
                title=params.title,
                by=actor_of(call),
            )
        host.opened.note(session.session_id)
        return SessionResult(session=session, cursor=host.log.cursor())

    async def rewind(call: Call, params: SessionRewindParams) -> SessionRewindResult:
        record = await host.rewinding.rewind(
            params.session_id, params.before_turn_id, by=actor_of(call)
        )
        return await rewound(host, params.session_id, record.seq)

    async def queue(_: Call, params: SessionQueueParams) -> dict[str, Any]:
        await host.reading.session(params.session_id)
        after = number(params.cursor, 0)

        async def fetch(limit: int) -> tuple[list[QueuedPrompt], str | None]:
            page, reached = await host.queue.page(params.session_id, after=after, limit=limit)
            return page, text(reached)

        return await sized(fetch, page_size(params.limit, limits.page_items), limits.page_bytes)

    async def update(call: Call, params: SessionQueueUpdateParams) -> SessionQueueResult:
        await host.reading.session(params.session_id)  # before what may be wrong with the content
        actor = actor_of(call)
        author = Author(kind="person", name=actor.name or "person", id=actor.id)
        # what a prompt becomes is asked about like what it was at first
        content = await host.submitting.asked(params.session_id, params.content, author=author)
        return changed(
            await host.queue.update(params.session_id, params.event_seq, content, by=actor)
        )

    async def remove(call: Call, params: SessionQueueRemoveParams) -> SessionQueueResult:
        return changed(
            await host.queue.remove(
                params.session_id, params.event_seq, by=actor_of(call), reason=params.reason
            )
        )

    return {
        "session/fork": fork,
        "session/rewind": rewind,
        "session/queue": queue,
        "session/queueUpdate": update,
        "session/queueRemove": remove,
    }
