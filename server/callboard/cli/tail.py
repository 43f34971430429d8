"""``callboard tail``: a session as it happens, whoever drives it."""

from typing import Annotated

import anyio
from cyclopts import Parameter, validators

from callboard_client import Client
from callboard_rpc.events import Event, SessionDeleted
from callboard_rpc.server import ClientCapabilities
from callboard_rpc.sessions import Session
from callboard_rpc.streams import Scope

from .exits import Exit
from .interrupts import Interrupts
from .naming import resolve
from .present import Presenter
from .server import StoreOption, connect_existing
from .terminal import open_console, write_json_line

_MOST = 199


async def tail(
    session: str,
    /,
    *,
    lines: Annotated[
        int, Parameter(name=["--lines", "-n"], validator=validators.Number(gte=0, lte=_MOST))
    ] = 20,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Follow a session live until Ctrl-C, also one that another program runs.

    Parameters
    ----------
    session
        Its id, or the beginning of it.
    lines
        How many of its last events to show first, 199 at the most.
    json
        Print each event as a line of JSON.
    """
    interrupts = Interrupts()
    async with anyio.create_task_group() as tasks:
        await tasks.start(interrupts.watch)
        interrupts.scope = tasks.cancel_scope
        capabilities = ClientCapabilities(deltas=not json)
        async with connect_existing(
            store, name="tail", capabilities=capabilities, restart=True
        ) as client:
            await _follow(client, await resolve(client, session), lines, json=json)
        tasks.cancel_scope.cancel()
    return Exit.OK


async def _follow(client: Client, session: Session, lines: int, *, json: bool) -> None:
    presenter = None
    if not json:
        presenter = Presenter(console=open_console(), root=session.session_id, details=True)
    scope = Scope(kind="session", id=session.session_id)
    now = await client.sessions.get(session.session_id)
    first = now.session.head_seq - lines + 1
    # One more than is shown: the stream begins behind the first event of the page.
    page = await client.history.page(scope, before=now.cursor, limit=lines + 1)
    async with client.events(scope, page.next_cursor or "start", deltas=not json) as stream:
        while True:
            item, wire = await stream.receive()
            if isinstance(item, Event) and item.seq < first:
                continue
            if presenter is not None:
                presenter.show(item)
            elif isinstance(item, Event):
                write_json_line(wire)
            if isinstance(item, Event) and isinstance(item.data, SessionDeleted):
                return
