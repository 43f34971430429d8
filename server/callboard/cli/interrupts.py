"""Ctrl-C: once asks for an end, twice takes it."""

import signal

import anyio
from anyio.abc import TaskStatus
from attrs import define, field


@define
class Interrupts:
    """`first` and `second` are set by SIGINT or SIGTERM, while `watch` runs.

    While `scope` is set, there is nothing that could be ended gently: the first signal cancels it.
    """

    scope: anyio.CancelScope | None = None
    first: anyio.Event = field(factory=anyio.Event)
    second: anyio.Event = field(factory=anyio.Event)

    async def watch(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for _ in signals:
                (self.second if self.first.is_set() else self.first).set()
                if self.scope is not None:
                    self.scope.cancel()
