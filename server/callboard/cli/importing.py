"""``callboard sessions import``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from callboard_rpc.convert import unstructure

from .exits import Exit
from .server import StoreOption, connect
from .terminal import line, open_console, write_json_line
from .wording import plural


async def import_session(
    file: Path,
    /,
    *,
    new_id: Annotated[bool, Parameter(negative=())] = False,
    cwd: Annotated[Path | None, Parameter(name=["--cwd", "-C"])] = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Bring in a session that `callboard sessions export` wrote as JSON lines; all of it, or nothing.

    Nothing in it runs by itself: a prompt that waited there is answered with the next one.

    Parameters
    ----------
    file
        The exported file.
    new_id
        Import it as a new session, beside one of the same id.
    cwd
        The folder in which it is to work here; the one that the file names by default. Until you say so
        here, or have a session of your own there, it asks before it reads anything.
    json
        What was imported as one JSON object.
    """
    async with connect(store, name="sessions") as client:
        result = await client.sessions.import_file(file, new_id=new_id, cwd=cwd)
    if json:
        write_json_line(unstructure(result))
        return Exit.OK
    console = open_console()
    session = result.session
    console.print(
        line("imported ", session.session_id, (f"  {session.title or ''}", "dim")), soft_wrap=True
    )
    console.print(
        line((f"{plural(result.events, 'event')}, folder {session.cwd}", "dim")), soft_wrap=True
    )
    if result.added:
        console.print(
            line(("The turn that was under way when it was exported is interrupted.", "yellow"))
        )
    if session.queue_length:
        waiting = plural(session.queue_length, "prompt")
        console.print(
            line((f"{waiting} waited there, and will be taken along by the next one.", "yellow"))
        )
    return Exit.OK
