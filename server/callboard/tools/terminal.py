"""A command in a terminal of the editor, with the same result as if we had run it ourselves.

The editor tells what it printed and how it ended. It is never run again here: what was begun there and was
lost is told as lost. It bears the mark of its call, so that what is left of it on this machine is ended with the
call, also by a server that comes after one that was killed.
"""

import asyncio
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal

from .base import TerminalCommand, TerminalEnd, Terminals, ToolContext, ToolOutcome
from .display import printable
from .ending import MARK, end_marked
from .environment import CALM
from .offload import ended
from .output import OutputBuffer
from .printing import TIMED_OUT, Watched, told

KEPT_BYTES: Final = 1024 * 1024
"""How much of its output a terminal keeps. It is asked for as a whole, again and again."""

_LONGEST_WORD: Final = 400
_UNKNOWN: Final = (
    "[how the command ended is not known: {}. It may have done all of its work, some of it, or none. What was "
    "left of it on this machine was ended. Look at what it has changed before you run anything again.]"
)
_MAY_GO_ON: Final = "[timed out after {:g} s; the editor was told to end the command, and whether it has is not known: {}]"


async def run_in_terminal(
    context: ToolContext,
    terminals: Terminals,
    argv: tuple[str, ...],
    *,
    cwd: Path,
    time_limit_s: float,
) -> ToolOutcome | None:
    """Runs a command there. None where the editor refuses it, and nothing was begun."""
    command = TerminalCommand(
        call_id=context.call_id,
        argv=argv,
        cwd=cwd,
        environment={**CALM, MARK: context.call_id},
        time_limit_s=time_limit_s,
        kept_bytes=KEPT_BYTES,
    )
    seen = OutputBuffer()
    watched = Watched(context.emit)

    def printed(text: str) -> None:
        data = text.encode("utf-8", "replace")
        seen.feed(data)
        watched.feed(data)

    try:
        end = await terminals.run(command, printed)
    except asyncio.CancelledError:
        await _end_the_rest(context)
        raise
    finally:
        watched.close()
    if end is None:
        return None
    if end.timed_out or end.unknown is not None:
        await _end_the_rest(context)
    return await _outcome(context, end, seen, time_limit_s)


async def _end_the_rest(context: ToolContext) -> None:
    """The editor need not have ended all of it, nor be there any more."""
    await ended(partial(end_marked, (context.call_id,)))


async def _outcome(
    context: ToolContext, end: TerminalEnd, seen: OutputBuffer, time_limit_s: float
) -> ToolOutcome:
    output = seen
    if not end.cut:  # what was seen of it on the way may have been drawn over since
        output = OutputBuffer()
        output.feed(end.output.encode("utf-8", "replace"))
    status: Literal["ok", "error", "timed_out"] = "error"
    if end.timed_out:
        status = "timed_out"
    elif end.unknown is None and end.exit_code == 0 and end.signal is None:
        status = "ok"
    return await told(
        context,
        output,
        status=status,
        exit_code=None if end.timed_out or end.unknown is not None else _exit_code(end),
        notes=_notes(end, time_limit_s),
        complete=not end.cut,
    )


def _notes(end: TerminalEnd, time_limit_s: float) -> Sequence[str]:
    if end.timed_out:
        if end.unknown is not None:
            return (_MAY_GO_ON.format(time_limit_s, _whole(end.unknown)),)
        return (TIMED_OUT.format(time_limit_s),)
    if end.unknown is not None:
        return (_UNKNOWN.format(_whole(end.unknown)),)
    if end.signal is not None:
        return (f"[ended by signal {_whole(end.signal)}]",)
    if end.exit_code is None:
        return ("[ended in the editor, without an exit code]",)
    return () if end.exit_code == 0 else (f"[exit code {end.exit_code}]",)


def _whole(given: str) -> str:
    """What the editor says, whole or not at all: a piece of it may be half of a secret, which is none that the
    log would know (session-messaging 12)."""
    if len(given) > _LONGEST_WORD:
        return "it is too long to be told"
    return " ".join(printable(given).split())


def _exit_code(end: TerminalEnd) -> int | None:
    """128 + n after signal n, as shells have it; None where the editor's name for it is none of ours."""
    if end.signal is None:
        return end.exit_code
    name = end.signal.upper()
    number = getattr(signal, name if name.startswith("SIG") else f"SIG{name}", None)
    return 128 + number if isinstance(number, signal.Signals) else None
