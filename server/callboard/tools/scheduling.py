"""In which order the tool calls of one answer run (`specs/coordination.md` 11).

Reads run together; as soon as one call of a batch is not a read, all run one after another in the
order in which the model gave them. Writes and commands hold the coordinator of their workspace.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal, Protocol, TypeVar, final
from weakref import WeakValueDictionary

import anyio

from .base import Effect

READS_AT_ONCE = 16
"""How many reads of one batch run at the same time at the most."""


class WriteCoordinator:
    """Lets one call at a time change a workspace, in the order in which they asked.

    Shared by a root session and all its children (`specs/coordination.md` 11).
    """

    def __init__(self) -> None:
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def hold(self) -> AsyncGenerator[None, None]:
        """Waits for its turn; nothing is held when the wait is cancelled."""
        async with self._lock:
            yield


class WriteCoordinators:
    """The coordinator of each workspace root, for as long as somebody keeps it."""

    def __init__(self) -> None:
        self._by_root: WeakValueDictionary[Path, WriteCoordinator] = WeakValueDictionary()

    def of(self, root: Path) -> WriteCoordinator:
        """The one coordinator of `root` (resolved); keep it as long as the session lives."""
        coordinator = self._by_root.get(root)
        if coordinator is None:
            coordinator = self._by_root[root] = WriteCoordinator()
        return coordinator


@final
class Superseded:
    """The outcome of a call that did not start because the person has said something else since."""

    def __repr__(self) -> str:
        return "SUPERSEDED"


SUPERSEDED: Final = Superseded()


class Call(Protocol):
    """What scheduling has to know of a tool call."""

    @property
    def effect(self) -> Effect: ...


C = TypeVar("C", bound=Call)
O = TypeVar("O")  # noqa: E741 - an outcome


def order_of(calls: Sequence[Call]) -> Literal["together", "in order"]:
    """How a batch runs: together only when every call is a read."""
    return "together" if all(call.effect == "read" for call in calls) else "in order"


async def run_batch(
    calls: Sequence[C],
    execute: Callable[[C], Awaitable[O]],
    *,
    coordinator: WriteCoordinator,
    superseded: Callable[[], bool],
    admit: Callable[[C], Awaitable[O | None]] | None = None,
) -> tuple[O | Superseded, ...]:
    """Runs `calls` and returns their outcomes in call order.

    `admit` is asked before a call takes the coordinator, so that nobody else's writes wait while a
    person thinks about an approval; an outcome from it (a denial) stands in for the call. `execute`
    then runs the call and makes its result known by itself, as soon as it has it.

    Before a call of an ordered batch starts, and once more when it has waited, `superseded` is
    asked; when it says yes, that call and all later ones but reads get `SUPERSEDED`
    (`specs/coordination.md` #62). An exception or a cancellation ends the calls that are under way,
    waits for them, and is raised as it is.
    """
    if order_of(calls) == "together":
        return await _together(calls, execute, admit)
    outcomes: list[O | Superseded] = []
    steered = False
    for call in calls:
        if call.effect == "read":
            outcomes.append(await _one(call, execute, admit))
            continue
        steered = steered or superseded()
        if steered:
            outcomes.append(SUPERSEDED)
            continue
        answered = None if admit is None else await admit(call)
        if answered is not None:
            outcomes.append(answered)
            continue
        if call.effect == "kernel":
            steered = superseded()
            outcomes.append(SUPERSEDED if steered else await execute(call))
            continue
        async with coordinator.hold():
            steered = superseded()
            outcomes.append(SUPERSEDED if steered else await execute(call))
    return tuple(outcomes)


async def _one(
    call: C,
    execute: Callable[[C], Awaitable[O]],
    admit: Callable[[C], Awaitable[O | None]] | None,
) -> O:
    answered = None if admit is None else await admit(call)
    return await execute(call) if answered is None else answered


async def _together(
    calls: Sequence[C],
    execute: Callable[[C], Awaitable[O]],
    admit: Callable[[C], Awaitable[O | None]] | None,
) -> tuple[O, ...]:
    if len(calls) == 1:
        return (await _one(calls[0], execute, admit),)
    outcomes: dict[int, O] = {}
    faults: list[Exception] = []
    limiter = anyio.Semaphore(READS_AT_ONCE)
    async with anyio.create_task_group() as group:

        async def run(index: int, call: C) -> None:
            try:
                async with limiter:
                    outcomes[index] = await _one(call, execute, admit)
            except Exception as fault:
                faults.append(fault)
                group.cancel_scope.cancel()

        for index, call in enumerate(calls):
            group.start_soon(run, index, call)
    if faults:
        raise faults[0]
    return tuple(outcomes[index] for index in range(len(calls)))
