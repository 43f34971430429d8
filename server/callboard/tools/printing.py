"""What a command prints, on its way to whoever watches, and in its result; wherever it runs."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Literal

from .base import ToolContext, ToolOutcome
from .offload import finished
from .output import OutputBuffer, Streamer

TIMED_OUT: Final = (
    "[timed out after {:g} s; the command and everything it had started were ended. "
    "Give a larger timeout_ms if it needs longer.]"
)


class Watched:
    """Streams what is printed to `emit`, each piece when its time has come."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._streamer = Streamer(emit)
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, data: bytes) -> None:
        wait = self._streamer.feed(data)
        if wait is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(wait, self._flush)

    def _flush(self) -> None:
        self._timer = None
        self._streamer.flush()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._streamer.flush(final=True)


async def told(
    context: ToolContext,
    output: OutputBuffer,
    *,
    status: Literal["ok", "error", "timed_out"],
    exit_code: int | None,
    notes: Sequence[str],
    complete: bool = True,
) -> ToolOutcome:
    """The outcome of a command: its output, cut where it is long and kept beside the call then, and `notes`
    of how it ended, each a line in brackets. `complete`: nothing was missing in what came."""
    shown = output.text(context.output_limit_bytes)
    blob = None
    about: list[str] = []
    if shown.truncated:
        kept = "the whole of it is kept" if output.complete else "its beginning and end are kept"
        if not complete:
            kept = "what was seen of it in the editor's terminal is kept"
        blob = await context.blobs.put(await finished(output.whole))
        about.append(f"[output of {output.total} bytes was cut; {kept} with this call]")
    elif not complete:
        about.append(
            "[some of the output may be missing: not all that the editor's terminal had was seen]"
        )
    body = shown.text.rstrip("\n") if shown.text.strip() else "(no output)"
    return ToolOutcome(
        text="\n".join((body, *about, *notes)),
        status=status,
        exit_code=exit_code,
        truncated=shown.truncated or not complete,
        blob=blob,
    )
