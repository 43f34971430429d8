"""A real server that has no room for its own row as long as the file ``FULL`` names is there."""

import os
import sys
from pathlib import Path

from callboard.cli import main
from callboard.sessions.presence import Presence
from callboard_rpc.errors import CallboardError

arrive = Presence.arrive


async def hindered(self: Presence) -> None:
    if Path(os.environ["FULL"]).exists():
        raise CallboardError("storeFull", "the disk is full; free some space and try again")
    await arrive(self)


Presence.arrive = hindered

if __name__ == "__main__":
    sys.exit(main())
