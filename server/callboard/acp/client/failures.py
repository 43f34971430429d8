"""What goes wrong with an agent, in words for people: what it is, and what they can do."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from callboard_rpc.common import UnknownVariant
from callboard_rpc.errors import CallboardError

from ...rpc import codec
from ...sessions.profiles import Profile
from ...sessions.ready import login_command, program_line
from ..contract import server
from ..peer import PeerError

HANDSHAKE_S = 30.0
"""How long an agent may take to say what it can do, and to open a session."""
AUTH_REQUIRED: Final = -32000
AGAIN: Final = "(It is started again with the next prompt.)"


def failure_of(
    fault: Exception,
    method: str,
    profile: Profile,
    ways_to_log_in: Sequence[server.AuthMethod],
    *,
    log_text: Callable[[str], str],
) -> CallboardError:
    """What came of asking an agent for `method`: `PeerError`, `PeerClosed` or `TimeoutError`."""
    match fault:
        case PeerError(code=code) if code == AUTH_REQUIRED:
            return _login(log_text(fault.message)[:300], profile, ways_to_log_in)
        case PeerError():
            said = log_text(fault.message)[:1_000]
            detail = _detail(fault.data, log_text)
            return CallboardError(
                "modelError", f"the agent {profile.name!r} failed: {said}{detail}"
            )
        case TimeoutError():
            return CallboardError(
                "modelUnavailable",
                f"the agent {profile.name!r} did not answer {method} within {HANDSHAKE_S:g} s; see that "
                f"'{' '.join(profile.command)[:200]}' speaks the Agent Client Protocol on its output",
            )
        case _:
            return CallboardError("modelError", f"{str(fault)[:4_000]}\n{AGAIN}")


def _detail(data: Any, log_text: Callable[[str], str]) -> str:
    if data is None:
        return ""
    if isinstance(data, dict):  # some have the words in a field of it
        told = cast("dict[str, Any]", data)
        data = next((told[key] for key in ("message", "details") if told.get(key)), told)
    text = data if isinstance(data, str) else codec.encode(data).decode()
    return f" ({log_text(text)[:500]})"


def _login(said: str, profile: Profile, ways: Sequence[server.AuthMethod]) -> CallboardError:
    """How the person comes to be logged in: only in the agent's own program."""
    named = [told for each in ways[:8] if (told := _way(each))]
    offers = f" It offers: {'; '.join(named)}." if named else ""
    return CallboardError(
        "authRequired",
        f"the agent {profile.name!r} wants you to log in ({said}). {_advice(profile, ways)}{offers}",
    )


def _advice(profile: Profile, ways: Sequence[server.AuthMethod]) -> str:
    known = login_command(profile.command)
    if known is None:
        terminal = (way for way in ways if isinstance(way, server.AuthMethodTerminal) and way.args)
        known = next((_line((*profile.command, *way.args)) for way in terminal), None)
    if known is None or " " not in known:
        program = known or program_line(profile.command)
        return f"Run '{program}' in a terminal, log in there, and prompt again."
    return f"Run '{known}' in a terminal, and prompt again."


def _line(words: Sequence[str]) -> str | None:
    """A command as it is typed; None for one that nobody would type."""
    line = shlex.join(words)
    return line if len(line) <= 300 and line.isprintable() else None


def _way(way: server.AuthMethod | UnknownVariant) -> str:
    """Of a kind that is not known here, such as a draft's, what it is called tells a person enough."""
    if isinstance(way, UnknownVariant):
        name = way.fields.get("name")
        return name[:80] if isinstance(name, str) else ""
    return way.name[:80] + (f" ({way.description[:200]})" if way.description else "")
