"""An end of processes that has begun is seen through, also when the loop is gone that has begun it."""

import asyncio
import threading

from callboard.rpc import loop
from callboard.tools.offload import ended


def test_a_process_does_not_go_while_it_ends_others() -> None:
    begun, over, gone = threading.Event(), threading.Event(), threading.Event()

    async def main() -> None:
        here = asyncio.get_running_loop()

        def end() -> None:
            begun.set()
            while not here.is_closed():  # nobody can wait for it on that loop any more
                gone.wait(0.001)
            if not gone.wait(0.2):
                over.set()

        task = here.create_task(ended(end))
        await asyncio.to_thread(begun.wait)
        assert not task.done()

    loop.run(main())
    gone.set()
    assert over.is_set(), "it went first"
