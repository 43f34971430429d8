"""``callboard tail``: a session as it happens, whoever drives it."""

from typing import Annotated

import anyio
from cyclopts import Parameter

from callboard_client import Client, StreamItem
from callboard_rpc.common import Json
from callboard_rpc.convert import structure_lenient, unstructure
from callboard_rpc.events import Event, SessionDeleted
from callboard_rpc.server import ClientCapabilities
from callboard_rpc.sessions import Session
from callboard_rpc.streams import Scope

from .exits import Exit
from .interrupts import Interrupts
from .naming import resolve
from .present import Presenter
from .server import StoreOption, connect
from .terminal import open_console, write_json_line

_MOST = 200


async def tail(
    session: str,
    /,
    *,
    lines: Annotated[int, Parameter(name=["--lines", "-n"])] = 20,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Follow a session live until Ctrl-C, also one that another program runs.

    Parameters
    ----------
    session
        Its id, or the beginning of it.
    lines
        How many of its last events to show first, 200 at the most.
    json
        Print each event as a line of JSON.
    """
    interrupts = Interrupts()
    async with anyio.create_task_group() as tasks:
        await tasks.start(interrupts.watch)
        interrupts.scope = tasks.cancel_scope
        capabilities = ClientCapabilities(deltas=not json)
        async with connect(store, name="tail", capabilities=capabilities, restart=True) as client:
            await _follow(client, await resolve(client, session), max(lines, 0), json=json)
        tasks.cancel_scope.cancel()
    return Exit.OK


async def _follow(client: Client, session: Session, lines: int, *, json: bool) -> None:
    presenter = None
    if not json:
        presenter = Presenter(console=open_console(), root=session.session_id, details=True)
    shown = 0

    def show(item: StreamItem, wire: Json) -> None:
        nonlocal shown
        if isinstance(item, Event):
            if item.seq <= shown:
                return
            shown = item.seq
        if presenter is not None:
            presenter.show(item)
        elif isinstance(item, Event):
            write_json_line(wire)

    scope = Scope(kind="session", id=session.session_id)
    head = (await client.sessions.get(session.session_id)).cursor
    wanted: Json = {"scope": unstructure(scope), "before": head, "limit": min(lines, _MOST)}
    page: Json = await client.request("event/list", wanted) if lines else {"data": []}
    for wire in page["data"]:
        show(structure_lenient(wire, Event), wire)
    start = page["cursor"] if page["data"] else "now"
    async with client.events(scope, start, deltas=not json) as stream:
        while True:
            item, wire = await stream.receive()
            show(item, wire)
            if isinstance(item, Event) and isinstance(item.data, SessionDeleted):
                return
