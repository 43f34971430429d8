"""Callboard's own methods for clients that know them: ``_callboard/agent/list`` is ``agent/list``, and so on.

Agents, groups and approvals have no methods in the protocol. Params and results are those of Callboard's own
protocol, and so are the rules.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from anyio import CancelScope

from callboard_rpc import convert as native
from callboard_rpc.methods import METHODS
from callboard_rpc.server import ClientCapabilities, PeerInfo

from ...host import Host
from ...rpc.call import Call, Client
from ...rpc.call import Handler as NativeHandler
from ...rpc.handlers import agents, approvals, groups, probing
from ..peer import Handler, Incoming
from .editor import Editor

PREFIX = "_callboard/"


def extensions(host: Host, editor: Editor) -> dict[str, Handler]:
    """The handlers, by the names under which a client calls them."""
    table: dict[str, NativeHandler] = {
        **agents.handlers(host, _held),
        **probing.handlers(host),
        **approvals.handlers(host),
        **groups.handlers(host),
    }
    client = Client(
        client_id=editor.actor.id,
        framing="ndjson",
        info=None if editor.actor.name is None else PeerInfo(name=editor.actor.name),
        capabilities=ClientCapabilities(),
        experimental=False,
        config={},
        process_id=None,
        root_uri=None,
        raw={},
    )
    return {PREFIX + name: _served(name, handler, client, host) for name, handler in table.items()}


def _held(_: Call) -> AbstractContextManager[None]:
    """The client follows sessions that it knows, and is told nothing of others before their answers."""
    return nullcontext()


def _served(name: str, handler: NativeHandler, client: Client, host: Host) -> Handler:
    method = METHODS[name]

    async def serve(incoming: Incoming, params: Any) -> Any:
        call = Call(
            method=name,
            client=client,
            connection=cast("Any", None),  # these families have no use for it
            request_id=incoming.request_id,
            correlation_id=host.log.ids.new("req"),
            cancelled=CancelScope(),
        )
        result = await handler(call, native.structure(params, method.params))
        return native.unstructure(result)

    return serve
