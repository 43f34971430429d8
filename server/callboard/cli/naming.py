"""Finding a session by the beginning of its id."""

from callboard_client import Client, RemoteError
from callboard_rpc.common import SessionId
from callboard_rpc.sessions import Session

from .exits import CommandError, Exit

_PREFIX = "ses_"
_FULL_LENGTH = len(_PREFIX) + 26
_SHORT = 8
_NAMED = 8
"""How many candidates an error lists."""


async def resolve(client: Client, given: str) -> Session:
    """The session whose id begins with `given`, with or without its ``ses_``.

    Raises `CommandError` of three kinds: nothing was given, nothing fits, or several fit.
    """
    wanted = given.strip()
    if wanted in ("", _PREFIX):
        raise CommandError(
            "no session was named: give its id, or the beginning of it",
            exit=Exit.USAGE,
            hint="`callboard sessions list` shows the sessions there are.",
        )
    if not wanted.startswith(_PREFIX):
        wanted = _PREFIX + wanted
    if len(wanted) >= _FULL_LENGTH:
        try:
            return (await client.sessions.get(SessionId(wanted))).session
        except RemoteError as fault:
            if fault.kind not in ("sessionNotFound", "invalidParams"):
                raise
            raise _unknown(given) from None
    found = await _beginning_with(client, wanted)
    if not found:
        raise _unknown(given)
    if len(found) > 1:
        raise _ambiguous(given, found)
    return found[0]


async def _beginning_with(client: Client, prefix: str) -> list[Session]:
    found: dict[str, Session] = {}
    for archived in (None, True):
        async for session in client.sessions.list(archived=archived):
            if session.session_id.lower().startswith(prefix.lower()):
                found[session.session_id] = session
    return list(found.values())


def _unknown(given: str) -> CommandError:
    return CommandError(
        f"no session begins with {given!r}",
        exit=Exit.USAGE,
        hint="`callboard sessions list` shows the sessions there are.",
    )


def _ambiguous(given: str, found: list[Session]) -> CommandError:
    names = short_names([session.session_id for session in found])
    listed = ", ".join(names[session.session_id] for session in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return CommandError(
        f"{len(found)} sessions begin with {given!r}: {listed}{more}",
        exit=Exit.USAGE,
        hint="Write more of the id.",
    )


def short_names(ids: list[SessionId]) -> dict[str, str]:
    """Beginnings of ids (without ``ses_``) of 8 characters, longer where only that tells them
    apart."""
    bare = [each.removeprefix(_PREFIX) for each in ids]
    length = _SHORT
    longest = max((len(each) for each in bare), default=0)
    while length < longest and len({each[:length] for each in bare}) < len(set(bare)):
        length += 1
    return {each: name[:length] for each, name in zip(ids, bare, strict=True)}
