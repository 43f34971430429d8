"""Whoever waits for the ends of runs, as a parent of their sessions would; and what it has still to hear."""

import asyncio
from collections.abc import Awaitable, Callable

from turns_kit import PATIENCE_S

from callboard.host import Feature, Host
from callboard.log.record import Record
from callboard.log.transaction import Transaction
from callboard.sessions.telling import RunListener
from callboard_rpc.sessions import Turn


class Parent:
    """Listens as a parent of the sessions would. The first `failures` times it fails."""

    def __init__(
        self,
        act: Callable[[Turn], Awaitable[None]] | None = None,
        *,
        failures: int = 0,
        wants: Callable[[Transaction, Record], bool] | None = None,
    ) -> None:
        self.told: list[Turn] = []
        self.calls = 0
        self._act = act
        self._failures = failures
        self._wants = wants
        self._moved = asyncio.Event()

    @property
    def feature(self) -> Feature:
        more = {} if self._wants is None else {"wants": self._wants}
        listener = RunListener(name="parent", told=self._told, **more)
        return Feature(name="parent", listeners=lambda _: (listener,))

    async def _told(self, turn: Turn) -> None:
        self.calls += 1
        if self.calls <= self._failures:
            raise RuntimeError("the parent failed")
        if self._act is not None:
            await self._act(turn)
        self.told.append(turn)
        self._moved.set()

    async def heard(self, number: int) -> list[Turn]:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.told) < number:
                self._moved.clear()
                await self._moved.wait()
        return self.told


async def left_to_tell(host: Host) -> int:
    rows = await host.log.query("SELECT count(*) FROM runs_to_tell")
    return rows[0][0]


async def nothing_left(host: Host) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await left_to_tell(host):
            await asyncio.sleep(0)
