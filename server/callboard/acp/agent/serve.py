"""``callboard serve --acp``: an editor that speaks the Agent Client Protocol, on stdin and stdout."""

from typing import TYPE_CHECKING

from ...rpc import boot
from ...rpc.wire import Wire
from .greeting import Greeter

if TYPE_CHECKING:
    from ...rpc.serve import Opening


def serve(wire: Wire, opening: "Opening") -> int:
    """Serves until the client is gone; returns the exit code."""
    greeter = Greeter(opening)
    started = boot.begin(wire, greeter, framing="ndjson")
    from .service import run

    return run(wire, started, opening, greeter)
