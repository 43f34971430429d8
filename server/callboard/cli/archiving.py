"""``callboard sessions archive`` and ``unarchive``."""

from typing import Annotated

from cyclopts import Parameter

from .exits import Exit
from .naming import resolve
from .server import StoreOption, connect_existing
from .terminal import line, open_console

Sessions = Annotated[list[str], Parameter(negative=())]


async def archive(sessions: Sessions, /, *, store: StoreOption | None = None) -> int:
    """Put sessions away: they are left out of the list, and take no prompt until they are brought back.

    Parameters
    ----------
    sessions
        Their ids, or the beginnings of them.
    """
    async with connect_existing(store, name="sessions") as client:
        for session in [await resolve(client, given) for given in sessions]:
            await client.sessions.archive(session.session_id)
            open_console().print(line("archived ", session.session_id), soft_wrap=True)
    return Exit.OK


async def unarchive(sessions: Sessions, /, *, store: StoreOption | None = None) -> int:
    """Bring archived sessions back.

    Parameters
    ----------
    sessions
        Their ids, or the beginnings of them; `callboard sessions list --archived` shows them.
    """
    async with connect_existing(store, name="sessions") as client:
        for session in [await resolve(client, given) for given in sessions]:
            await client.sessions.unarchive(session.session_id)
            open_console().print(line("unarchived ", session.session_id), soft_wrap=True)
    return Exit.OK
