"""An HTTP fake in a thread beside the test, for tests that drive a real server and wait for it."""

import asyncio
import threading
from typing import Any, Self

from fakes.http_fake import HttpFake, Reply, Request


class Aside:
    """Serves `reply` while it is entered; `url` is where."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.url = ""

    def reply(self, request: Request) -> Reply:
        """What is answered; in the thread."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: Any) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(30)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        async with HttpFake(answer=self.reply) as fake:
            self.url = fake.url
            self._ready.set()
            await self._over.wait()
