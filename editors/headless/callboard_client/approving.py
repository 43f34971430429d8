"""Approvals that the server asks this client to answer."""

from collections import deque
from typing import Any, Literal

import anyio

from callboard_rpc.approvals import Approval, ApprovalRequestParams, ApprovalRequestResult
from callboard_rpc.common import ApprovalId, SessionId
from callboard_rpc.convert import structure_lenient, unstructure

from .errors import ClientError

PendingState = Literal["open", "answered", "deferred", "withdrawn"]


class PendingApproval:
    """One question, to be answered once: by `answer`, or by `defer`, which leaves it to others.

    When somebody else's answer wins, or the server ends, it is withdrawn; answering then does
    nothing. Holding one without answering harms nobody: it stays open for all.
    """

    def __init__(self, approval: Approval) -> None:
        self.approval = approval
        self.state: PendingState = "open"
        self._reply: ApprovalRequestResult | None = None
        self._changed = anyio.Event()

    @property
    def approval_id(self) -> ApprovalId:
        return self.approval.approval_id

    @property
    def session_id(self) -> SessionId:
        return self.approval.session_id

    @property
    def root_id(self) -> SessionId:
        return self.approval.root_id

    @property
    def withdrawn(self) -> bool:
        return self.state == "withdrawn"

    def answer(self, option_id: str, feedback: str | None = None) -> bool:
        """Chooses an option. False when it was too late. Raises `ClientError` for an option that
        was not offered; `feedback` is for the model, when the option rejects."""
        offered = [option.option_id for option in self.approval.options]
        if option_id not in offered:
            raise ClientError(
                f"approval {self.approval_id} has no option {option_id!r}: "
                f"choose one of {', '.join(offered)}"
            )
        return self._settle(
            "answered", ApprovalRequestResult(option_id=option_id, feedback=feedback)
        )

    def defer(self) -> bool:
        """Leaves the answer to other clients. False when it was too late."""
        return self._settle("deferred", ApprovalRequestResult(defer=True))

    async def wait_settled(self) -> PendingState:
        """Returns when it was answered, deferred or withdrawn, and says which."""
        await self._changed.wait()
        return self.state

    def withdraw(self) -> None:
        """Called by the client when the answer is no longer wanted."""
        self._settle("withdrawn", None)

    async def reply(self) -> ApprovalRequestResult:
        """Called by the client: waits for what is to be sent."""
        await self._changed.wait()
        assert self._reply is not None
        return self._reply

    def _settle(self, state: PendingState, reply: ApprovalRequestResult | None) -> bool:
        if self.state != "open":
            return False
        self.state = state
        self._reply = reply
        self._changed.set()
        return True


class ApprovalDesk:
    """Where requests of the server wait for whoever iterates over them."""

    def __init__(self) -> None:
        self._waiting: deque[PendingApproval] = deque()
        self._arrived = anyio.Event()
        self._ended = False
        self._fault: Exception | None = None

    async def handle(self, params: Any) -> Any:
        """The handler of ``approval/request``. Cancelling it withdraws the question."""
        pending = PendingApproval(structure_lenient(params, ApprovalRequestParams).approval)
        self._waiting.append(pending)
        self._arrived.set()
        try:
            return unstructure(await pending.reply())
        finally:
            pending.withdraw()

    def end(self, fault: Exception | None) -> None:
        """No more requests will come; iterators stop, or raise `fault`."""
        self._ended, self._fault = True, fault
        self._arrived.set()

    async def next(self) -> PendingApproval:
        while True:
            while self._waiting:
                pending = self._waiting.popleft()
                if pending.state == "open":
                    return pending
            if self._fault is not None:
                raise self._fault
            if self._ended:
                raise StopAsyncIteration
            self._arrived = anyio.Event()
            await self._arrived.wait()


class ApprovalRequests:
    """An async iterator of `PendingApproval`. Several share the requests among them."""

    def __init__(self, desk: ApprovalDesk) -> None:
        self._desk = desk

    def __aiter__(self) -> "ApprovalRequests":
        return self

    async def __anext__(self) -> PendingApproval:
        return await self._desk.next()
