"""``callboard tail``: a session as it happens, whoever drives it."""

from typing import Annotated

import anyio
from cyclopts import Parameter, validators

from callboard_client import CaughtUp, Client, RemoteError
from callboard_rpc.events import Event, SessionDeleted
from callboard_rpc.server import ClientCapabilities
from callboard_rpc.sessions import Session
from callboard_rpc.streams import Scope

from .acquainting import acquaint
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
        await acquaint(client, presenter, session.root_id)
    scope = Scope(kind="session", id=session.session_id)
    now = await client.sessions.get(session.session_id)
    first = now.session.head_seq - lines + 1
    # One more than is shown: the stream begins behind the first event of the page.
    page = await client.history.page(scope, before=now.cursor, limit=lines + 1)
    async with client.events(scope, page.next_cursor or "start", deltas=not json) as stream:
        told = False
        while True:
            item, wire = await stream.receive()
            if isinstance(item, Event) and item.seq < first:
                continue
            if presenter is not None:
                presenter.show(item)
                if isinstance(item, CaughtUp) and not told:
                    told = True
                    await _tell_what_is_waited_for(client, session, presenter)
            elif isinstance(item, Event):
                write_json_line(wire)
            if isinstance(item, Event) and isinstance(item.data, SessionDeleted):
                return


async def _tell_what_is_waited_for(client: Client, session: Session, presenter: Presenter) -> None:
    """Of a session in which nothing happens just now."""
    try:
        now = (await client.sessions.get(session.session_id)).session
    except RemoteError as fault:
        if fault.kind != "sessionNotFound":
            raise
        return  # it was deleted meanwhile, as its last event will say
    if now.status != "running":
        status = "waiting for an approval" if now.status == "waiting_approval" else now.status
        words = f"waiting for what happens next (the session is {status}); Ctrl-C ends this"
        presenter.say((words, "dim"))
