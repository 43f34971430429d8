"""``callboard peer``: links between sessions, which a person makes and ends from any terminal."""

import sys
from typing import Annotated

from cyclopts import App, Parameter
from rich.text import Text

from callboard_client import Client
from callboard_rpc.common import SessionId
from callboard_rpc.convert import unstructure
from callboard_rpc.peers import Peer

from .exits import CommandError, Exit
from .naming import SESSIONS, resolve
from .server import StoreOption, connect_existing
from .terminal import line, open_console, write_json_line
from .wording import local_time, plural

app = App(name="peer", help="Link sessions, and write from one to another.")

OfSession = Annotated[str, Parameter(help="The session, by its id or the beginning of it.")]
Linked = Annotated[
    str, Parameter(help="The linked session, by its id or the beginning of it; never by its title.")
]
Json = Annotated[bool, Parameter(negative=())]
_LONGEST_TOKEN = 1_000
_STDIN = "-"


@app.command
async def invite(
    session: OfSession, /, *, json: Json = False, store: StoreOption | None = None
) -> int:
    """Print a token that links another session to this one: once, and within ten minutes.

    Whoever has it can write to the session, so hand it over as you would a password. It is shown here and
    nowhere else.

    Parameters
    ----------
    json
        The token and its end, as `peer/invite` tells them.
    """
    async with connect_existing(store, name="peer invite") as client:
        told = await client.peers.invite((await resolve(client, session)).session_id)
    if json:
        write_json_line(unstructure(told))
        return Exit.OK
    # the token alone on stdout, for whoever pipes it
    hint = f"Until {local_time(told.expires_at)}, once: callboard peer accept SESSION -"
    open_console(stderr=True).print(line((hint, "dim")), soft_wrap=True)
    sys.stdout.write(told.token + "\n")
    sys.stdout.flush()
    return Exit.OK


@app.command
async def accept(
    session: OfSession,
    token: Annotated[
        str | None, Parameter(help="The token. Without it, or as `-`, it is read from stdin.")
    ] = None,
    /,
    *,
    json: Json = False,
    store: StoreOption | None = None,
) -> int:
    """Link a session to the one that has invited. From stdin the token stays out of the list of processes.

    Parameters
    ----------
    json
        The linked session, as `peer/accept` tells it.
    """
    given = sys.stdin.readline(_LONGEST_TOKEN).strip() if token in (None, _STDIN) else token
    if not given:
        raise CommandError(
            "no token was given", exit=Exit.USAGE, hint="`callboard peer invite` makes one."
        )
    async with connect_existing(store, name="peer accept") as client:
        told = await client.peers.accept((await resolve(client, session)).session_id, given)
    if json:
        write_json_line(unstructure(told.peer))
    else:
        _print(line("linked to ", (told.peer.session_id, "bold"), *_title(told.peer)))
    return Exit.OK


@app.command
async def send(
    session: OfSession,
    to: Linked,
    text: str,
    /,
    *,
    json: Json = False,
    store: StoreOption | None = None,
) -> int:
    """Write from a session to a linked one. One that is idle is woken where it is open.

    Parameters
    ----------
    text
        What to say, in 1 to 16,000 characters.
    json
        The message, as `peer/send` tells it.
    """
    async with connect_existing(store, name="peer send") as client:
        session_id = (await resolve(client, session)).session_id
        told = await client.peers.send(session_id, await _linked(client, session_id, to), text)
    if json:
        write_json_line(unstructure(told))
        return Exit.OK
    if told.repeated:
        _print(line(told.message_id, (" was sent before; it is sent once", "dim")))
    else:
        _print(line(told.message_id, (f" sent; {told.left} more within the hour", "dim")))
    return Exit.OK


@app.command(name="list")
async def list_(
    session: OfSession, /, *, json: Json = False, store: StoreOption | None = None
) -> int:
    """Show the sessions that one is linked to.

    Parameters
    ----------
    json
        One JSON object a line, as `peer/list` tells them.
    """
    async with connect_existing(store, name="peer list") as client:
        told = await client.peers.list((await resolve(client, session)).session_id)
    for peer in told.peers:
        if json:
            write_json_line(unstructure(peer))
        else:
            _print(_row(peer))
    if not told.peers and not json:
        hint = "It is linked to no other session. `callboard peer invite` begins a link."
        open_console(stderr=True).print(line((hint, "dim")), soft_wrap=True)
    return Exit.OK


@app.command
async def leave(
    session: OfSession, peer: Linked, /, *, json: Json = False, store: StoreOption | None = None
) -> int:
    """End a link, for both sides, with all that is on its way between them.

    Parameters
    ----------
    json
        What came of it, as `peer/leave` tells it.
    """
    async with connect_existing(store, name="peer leave") as client:
        session_id = (await resolve(client, session)).session_id
        told = await client.peers.leave(session_id, await _linked(client, session_id, peer))
    if json:
        write_json_line(unstructure(told))
    elif not told.left:
        _print(line("they are not linked (any more)"))
    else:
        gone = f"; {plural(told.dropped, 'message')} not delivered" if told.dropped else ""
        _print(line(f"left{gone}"))
    return Exit.OK


async def _linked(client: Client, session_id: SessionId, given: str) -> SessionId:
    """The linked session that is meant. What is no beginning of one's id is left to the server to refuse."""
    peers: dict[str, Peer] = {
        each.session_id: each for each in (await client.peers.list(session_id)).peers
    }
    wanted = SESSIONS.wanted(given)
    if not any(each.startswith(wanted) for each in peers):
        return SessionId(wanted if SESSIONS.is_whole(wanted) else given)
    return SESSIONS.pick(given, peers).session_id


def _row(peer: Peer) -> Text:
    waiting = f" · {plural(peer.waiting, 'message')} not read" if peer.waiting else ""
    return line(
        (peer.session_id, "bold"),
        *_title(peer),
        (f" · since {local_time(peer.since)}{waiting}", "dim"),
        (" · one way only: leave it, and link anew" if peer.one_way else "", "yellow"),
    )


def _title(peer: Peer) -> tuple[str, ...]:
    return () if peer.title is None else (f" {peer.title}",)


def _print(text: Text) -> None:
    open_console().print(text, soft_wrap=True)
