"""A real server whose first pollers of linked sessions die: one is cancelled, and one ends by what nobody catches.

Started like ``callboard serve``. Each death is told on stderr.
"""

import asyncio
import sys

from callboard.cli import main
from callboard.peers.poller import Poller

_tick = Poller._tick  # pyright: ignore[reportPrivateUsage]
deaths: list[str] = []


class Fatal(BaseException):
    """Passes by every handler."""


async def dies(self: Poller) -> None:
    if len(deaths) == 2:
        return await _tick(self)
    deaths.append("died")
    sys.stderr.write(f"poller {len(deaths)} died\n")
    sys.stderr.flush()
    if len(deaths) == 1:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.get_running_loop().create_future()
    raise Fatal


Poller._tick = dies  # pyright: ignore[reportPrivateUsage]

if __name__ == "__main__":
    sys.exit(main())
