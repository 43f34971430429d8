"""One process that commits as fast as it can, for `hosts`. What it did is its last line, as JSON.

    committing.py STORE TASKS

It says ``ready``, begins with the next line of its input, and stops at the one after that.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from appending import PROJECTIONS, a_message, new_session

from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.store import open_store
from callboard.rpc import loop
from callboard_rpc.common import Actor

_ACTOR = Actor(kind="agent", id="bench", name="default")


async def _main(path: Path, tasks: int) -> None:
    ids = IdSource()
    store = open_store(path, ids=ids, now=utc_now)
    slowest = 0.0
    count = 0
    stop = False
    async with Log(store, ids=ids, now=utc_now, projections=PROJECTIONS) as log:
        session_ids = [await log.transact(new_session) for _ in range(tasks)]

        async def work(session_id: str) -> None:
            nonlocal slowest, count
            while not stop:
                began = time.perf_counter()
                await log.append(session_id, a_message(ids), actor=_ACTOR)
                slowest = max(slowest, time.perf_counter() - began)
                count += 1

        async def watch() -> None:
            nonlocal stop
            await asyncio.to_thread(sys.stdin.readline)
            stop = True

        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        began = time.perf_counter()
        await asyncio.gather(watch(), *(work(session_id) for session_id in session_ids))
        took = time.perf_counter() - began
    print(json.dumps({"rate": count / took, "slowest_ms": 1000 * slowest}), flush=True)


if __name__ == "__main__":
    loop.run(_main(Path(sys.argv[1]), int(sys.argv[2])))
