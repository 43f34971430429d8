"""Competing coroutines, stepped in every order of their awaits: a scheduler that a test owns.

A task goes on, after each await, only when it is its turn; between two turns everything that was set in
motion comes to rest. So which task is next is the only thing that differs between two runs of a scene,
and a schedule that fails is played again by its delays. Nothing is decided by time.

Schedules are told by delays: without one the task that ran last goes on for as long as it can; a delay lets
the next one go first. Few delays reach most of what competing tasks can do to each other.
"""

import asyncio
import random
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import aiosqlite
from attrs import define, field

from callboard.host import Host
from callboard.log.writer import Writer

Scene = Callable[["Race"], Awaitable[None]]

_LONGEST = 5_000
"""Steps after which a race is given up: something goes round in circles."""
_PATIENCE_S = 60.0


@define(eq=False)
class _Runner:
    """A task of a race. `waiter` is there while it waits for its turn."""

    task: "asyncio.Task[Any] | None" = None
    waiter: "asyncio.Future[None] | None" = None
    granted: bool = False

    @property
    def waits(self) -> bool:
        return self.waiter is not None and not self.waiter.done()

    def go(self) -> None:
        self.granted = True
        assert self.waiter is not None
        self.waiter.set_result(None)


@define
class Race:
    """One run of a scene under one schedule. Called with coroutines, it runs them against each other, and
    all that they start, until they have ended; what is still under way then goes on freely.

    `delays` are the steps at which the one whose turn it is lets another one pass. With several hosts on one
    store it is a step, too, that one of them hears what the others have committed.
    """

    hosts: Sequence[Host]
    delays: Sequence[int]
    steps: int = 0
    trace: list[str] = field(factory=list[str])
    _stepping: bool = False
    _hearing: bool = False
    _runners: list[_Runner] = field(factory=list[_Runner])
    _last: _Runner | None = None
    _busy: int = 0

    async def __call__(self, *competing: Coroutine[Any, Any, Any]) -> list[Any]:
        """What each of them came to: its value, or its exception."""
        loop = asyncio.get_running_loop()
        self._stepping = True
        tasks = [loop.create_task(each, name=f"#{n}") for n, each in enumerate(competing)]
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._rest()
                while not all(task.done() for task in tasks):
                    await self._step()
        finally:
            self._stepping = False
            for runner in self._runners:
                if runner.waits:
                    runner.go()
            for host in self.hosts:
                host.log.refresh()
        return await asyncio.gather(*tasks, return_exceptions=True)

    # --- steps ---

    async def _step(self) -> None:
        ready: list[_Runner | Host] = [*filter(lambda each: each.waits, self._in_turn())]
        ready += [host for host in self.hosts if self._is_behind(host)]
        if ready:
            assert self.steps < _LONGEST, self.trace[-40:]
            self._take(ready[self.delays.count(self.steps) % len(ready)])
            self.steps += 1
        else:
            await asyncio.sleep(0.001)  # they wait for the machine's clock, and for nothing else
        await self._rest()

    def _take(self, chosen: "_Runner | Host") -> None:
        if isinstance(chosen, Host):
            self.trace.append(f"host {self.hosts.index(chosen)} hears")
            self._hearing = True
            chosen.log.refresh()
            self._hearing = False
        else:
            assert chosen.task is not None
            self.trace.append(chosen.task.get_name())
            self._last = chosen
            chosen.go()

    def _in_turn(self) -> list[_Runner]:
        """The one that went last, those that came after it, and around."""
        place = 0 if self._last is None else self._runners.index(self._last)
        return self._runners[place:] + self._runners[:place]

    def _is_behind(self, host: Host) -> bool:
        return len(self.hosts) > 1 and host.log._store.head() > host.log.head

    async def _rest(self) -> None:
        """Returns when nothing moves any more but by somebody's turn."""
        loop: Any = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(0.0005 if self._busy else 0)
            if not self._busy and not loop._ready:
                return

    # --- tasks ---

    def _task(self, loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> "asyncio.Task[Any]":
        """A task factory."""
        runner = _Runner()

        async def stepped() -> Any:
            return await self._stepped(work, runner)

        runner.task = asyncio.Task(stepped(), loop=loop, **more)
        runner.task.add_done_callback(lambda _: self._ended(runner))
        self._runners.append(runner)
        return runner.task

    @types.coroutine
    def _stepped(self, work: Coroutine[Any, Any, Any], runner: _Runner) -> Generator[Any, Any, Any]:
        """Runs a coroutine, and waits for its turn before each step of it."""
        fault: BaseException | None = None
        try:
            while True:
                while self._stepping and not runner.granted:
                    runner.waiter = asyncio.get_running_loop().create_future()
                    try:
                        yield from runner.waiter
                    except asyncio.CancelledError as cancelled:
                        fault = cancelled  # it hears of it when it is its turn
                runner.granted, runner.waiter = False, None
                try:
                    waits_for = work.send(None) if fault is None else work.throw(fault)
                except StopIteration as end:
                    return end.value
                fault = None
                try:
                    yield waits_for
                except GeneratorExit:
                    raise
                except BaseException as raised:
                    fault = raised
        finally:
            work.close()

    def _ended(self, runner: _Runner) -> None:
        if self._last is runner:
            place = self._runners.index(runner)
            self._last = self._runners[place - 1] if place else None
        self._runners.remove(runner)

    # --- threads ---

    def _counted(self, future: "asyncio.Future[Any]") -> "asyncio.Future[Any]":
        """A future that a thread will settle."""
        self._busy += 1
        future.add_done_callback(self._settled)
        return future

    def _settled(self, _: object) -> None:
        self._busy -= 1

    @contextmanager
    def directed(self) -> Generator[None]:
        """While a scene is played: tasks that begin are stepped, and the work of threads is counted."""
        loop = asyncio.get_running_loop()
        submit, execute, run = Writer.submit, aiosqlite.Connection._execute, loop.run_in_executor
        race = self

        def write(writer: Writer, function: Any) -> Any:
            return race._counted(submit(writer, function))

        @types.coroutine
        def read(*args: Any, **more: Any) -> Generator[Any, Any, Any]:
            reading = execute(*args, **more)
            future = race._counted(reading.send(None))  # it is with its thread now
            try:
                yield future
            finally:
                reading.close()
            return future.result()

        def in_executor(*args: Any) -> Any:
            return race._counted(run(*args))

        with ExitStack() as patches:
            patches.enter_context(patch.object(Writer, "submit", write))
            patches.enter_context(patch.object(aiosqlite.Connection, "_execute", read))
            patches.enter_context(patch.object(loop, "run_in_executor", in_executor))
            for host in self.hosts:
                look = _unless(lambda: race._stepping and not race._hearing, host.log.feed.look)
                patches.enter_context(patch.object(host.log.feed, "look", look))
            loop.set_task_factory(self._task)
            patches.callback(loop.set_task_factory, None)
            yield


def _unless(holds: Callable[[], bool], function: Callable[[], None]) -> Callable[[], None]:
    return lambda: None if holds() else function()


# --- every order ------------------------------------------------------------------------------


async def every_order(
    scene: Scene, *hosts: Host, most: int = 80, only: Sequence[int] | None = None
) -> int:
    """Plays a scene under one schedule after the other: without delays, with each single delay, and with
    pairs of them, up to `most`; `only` plays one again. Returns how many were played.

    The scene makes its own sessions, calls its `Race` once, and says what must hold then.
    """
    first = await _play(scene, hosts, only or ())
    if only is not None:
        return 1
    played = 1
    for delays in _schedules(first.steps):
        if played >= most:
            break
        await _play(scene, hosts, delays)
        played += 1
    return played


def _schedules(steps: int) -> Iterator[tuple[int, ...]]:
    """Each delay alone, then pairs, in orders that are mixed, and always the same; twice at one step lets two
    others pass."""
    alone: list[tuple[int, ...]] = [(step,) for step in range(steps)]
    pairs: list[tuple[int, ...]] = [(a, b) for a in range(steps) for b in range(a, steps)]
    for schedules in (alone, pairs):
        random.Random(0).shuffle(schedules)
        yield from schedules


async def _play(scene: Scene, hosts: Sequence[Host], delays: Sequence[int]) -> Race:
    race = Race(hosts=hosts, delays=delays)
    with race.directed():
        try:
            await scene(race)
        except BaseException as fault:
            fault.add_note(f"only={tuple(delays)}: {', '.join(race.trace)}")
            raise
    return race
