"""A real server that is killed, by itself, between the work of keyed requests and their answers.

Started like ``callboard serve``; when as many keyed requests as ``DYING_AFTER`` tells have been done, and
no answer of theirs is in the store, SIGKILL ends it.
"""

import asyncio
import os
import signal
import sys

from callboard.cli import main
from callboard.rpc import idempotency

left = int(os.environ["DYING_AFTER"])


async def keep(*_: object) -> bytes:
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return await asyncio.get_running_loop().create_future()


idempotency.StoredAnswers._keep = keep

if __name__ == "__main__":
    sys.exit(main())
