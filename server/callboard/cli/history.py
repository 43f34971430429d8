"""``callboard sessions fork`` and ``rewind``."""

from typing import Annotated

from cyclopts import Parameter, validators

from callboard_client import Client
from callboard_client.terminal_text import clean_line
from callboard_rpc.common import TurnId
from callboard_rpc.convert import unstructure
from callboard_rpc.sessions import Session, Turn

from .exits import CommandError, Exit
from .naming import Kind, resolve
from .server import StoreOption, connect_existing
from .terminal import line, open_console, write_json_line
from .wording import plural

_TURN = Kind(
    "trn_", "turn", "`callboard sessions show SESSION --json` lists the turns of a session."
)
_SHOWN_PATHS = 20


async def fork(
    session: str,
    /,
    *,
    at: str | None = None,
    title: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Make a new session that has the history of another one, and goes its own way from there.

    Parameters
    ----------
    session
        Its id, or the beginning of it.
    at
        The last turn that is taken over; by default the last one that has ended. A turn that was rewound
        can be named, too.
    title
        The title of the new session.
    json
        The new session as one JSON object.
    """
    async with connect_existing(store, name="sessions") as client:
        found = await resolve(client, session)
        turn_id = None if at is None else await _turn(client, found, at)
        result = await client.sessions.fork(found.session_id, at_turn_id=turn_id, title=title)
    made = result.session
    if json:
        write_json_line(unstructure(made))
        return Exit.OK
    console = open_console()
    console.print(
        line("forked ", made.session_id, (f"  {clean_line(made.title or '', 60)}", "dim")),
        soft_wrap=True,
    )
    console.print(
        line((f'Go on in it: callboard run --session {made.session_id} "…"', "dim")), soft_wrap=True
    )
    return Exit.OK


async def rewind(
    session: str,
    /,
    *,
    turns: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 1,
    before: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Go back to before a session's last turns: the agent knows nothing of them any more.

    The log keeps them, and files stay as they are.

    Parameters
    ----------
    session
        Its id, or the beginning of it.
    turns
        How many of the last turns go.
    before
        The first turn that goes, by its id, instead of a number of turns.
    json
        What went as one JSON object.
    """
    async with connect_existing(store, name="sessions") as client:
        found = await resolve(client, session)
        known = [turn async for turn in client.sessions.turns(found.session_id)]
        if before is not None:
            first = await _turn(client, found, before)
        elif turns > len(known):
            raise _too_few(found, len(known))
        else:
            first = known[-turns].turn_id
        result = await client.sessions.rewind(found.session_id, first)
    if json:
        write_json_line(unstructure(result))
        return Exit.OK
    console = open_console()
    console.print(
        line("rewound ", found.session_id, f" by {plural(result.turns, 'turn')}"), soft_wrap=True
    )
    if result.changed_paths:
        console.print(line(("Files that were changed in them are left as they are:", "yellow")))
        for path in result.changed_paths[:_SHOWN_PATHS]:
            console.print(line(f"  {clean_line(path)}"), soft_wrap=True)
        more = len(result.changed_paths) - _SHOWN_PATHS + result.more_paths
        if more > 0:
            console.print(line((f"  … and {more} more", "dim")))
    if result.commands:
        ran = plural(result.commands, "command")
        console.print(line((f"{ran} ran in them; what they did stands.", "yellow")))
    if known:
        last = known[-1].turn_id
        console.print(
            line(
                ("To go on from where it was: callboard sessions fork ", "dim"),
                (f"{found.session_id} --at {last}", "dim"),
            ),
            soft_wrap=True,
        )
    return Exit.OK


def _too_few(session: Session, known: int) -> CommandError:
    own = f"only {plural(known, 'turn')}" if known else "no turn"
    inherited = session.forked_from is not None
    return CommandError(
        f"{session.session_id} has {own} of its own that counts, so there is no more to rewind",
        exit=Exit.USAGE,
        hint="What it took over from where it was forked stays; fork that one at an earlier turn."
        if inherited
        else f"`callboard sessions show {session.session_id}` shows what was rewound before.",
    )


async def _turn(client: Client, session: Session, given: str) -> TurnId:
    """The turn that `given` names or begins; a whole id is taken as it is, since turns that were rewound
    or inherited are not among the session's."""
    wanted = _TURN.wanted(given)
    if _TURN.is_whole(wanted):
        return TurnId(wanted)
    turns: dict[str, Turn] = {
        turn.turn_id: turn async for turn in client.sessions.turns(session.session_id)
    }
    return _TURN.pick(given, turns).turn_id
