"""``event/*``."""

from typing import Any

from callboard_rpc.common import Empty
from callboard_rpc.streams import (
    AckParams,
    EventListParams,
    SubscribeParams,
    SubscribeResult,
    UnsubscribeParams,
)

from ...host import Host
from ..call import Call, Handler, Heed
from ..pages import invalid, page_size
from ..scopes import filter_of
from .client import Clients


def handlers(host: Host, clients: Clients) -> dict[str, Handler | Heed]:
    limits = host.settings.limits

    async def subscribe(call: Call, params: SubscribeParams) -> SubscribeResult:
        subscribed = await clients.of(call).subscriptions.subscribe(call, params)
        if params.scope.kind in ("session", "tree") and params.scope.id is not None:
            host.opened.note(params.scope.id)
        return subscribed

    async def unsubscribe(call: Call, params: UnsubscribeParams) -> Empty:
        clients.of(call).subscriptions.unsubscribe(params.subscription_id)
        return Empty()

    def ack(call: Call, params: AckParams) -> None:
        clients.of(call).subscriptions.acknowledge(params.subscription_id, params.cursor)

    async def list_(_: Call, params: EventListParams) -> dict[str, Any]:
        if params.after is not None and params.before is not None:
            raise invalid("$.before", "and after exclude each other")
        log = host.log
        filter = await filter_of(log, params.scope, params.types)
        log.refresh()
        # told before the page is read: whoever follows from there misses nothing of what came meanwhile
        cursor = log.cursor()
        limit = page_size(params.limit, limits.page_items)
        backwards = params.before is not None
        before = None if params.before in (None, "now") else log.position(params.before)
        records = await log.page(
            filter,
            after=0 if params.after is None else log.position(params.after),
            before=before,
            limit=limit,
            max_bytes=limits.page_bytes,
            backwards=backwards,
        )
        edge = None if not records else (records[0] if backwards else records[-1]).pos
        answer: dict[str, Any] = {
            "data": [record.wire() for record in records],
            "cursor": cursor,
        }
        # a page that is not full may still have ended by its size: whether there is more is asked
        if edge is not None and await _more(host, filter, edge, backwards):
            answer["nextCursor"] = log.cursor(edge)
        return answer

    return {
        "event/subscribe": subscribe,
        "event/unsubscribe": unsubscribe,
        "event/ack": Heed(ack),
        "event/list": list_,
    }


async def _more(host: Host, filter: Any, edge: int, backwards: bool) -> bool:
    if backwards:
        return bool(await host.log.page(filter, before=edge, limit=1, backwards=True))
    return bool(await host.log.page(filter, after=edge, limit=1))
