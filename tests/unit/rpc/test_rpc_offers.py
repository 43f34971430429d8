"""A client is asked, and its answer taken, though the store fails for a moment in between."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from callboard.host import Host
from callboard.rpc import offers
from callboard.rpc.holds import Holds
from callboard.rpc.questions import asking as asking_over
from callboard_rpc.approvals import (
    Approval,
    ApprovalOption,
    ApprovalRequestParams,
    ApprovalRequestResult,
    CommandSubject,
)
from callboard_rpc.common import ApprovalId, CallId, SessionId, TurnId
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, host_in, new_session

pytestmark = pytest.mark.anyio


@define
class Client:
    """A connection whose person allows everything, as soon as they are asked; and its subscriptions, which
    cover everything."""

    asked: "asyncio.Queue[str]" = field(factory=asyncio.Queue[str])
    holds: Holds = field(factory=Holds)
    look: Any = None

    async def request(self, method: str, params: ApprovalRequestParams, **_: Any) -> Any:
        assert method == "approval/request"
        self.asked.put_nowait(params.approval.approval_id)
        return ApprovalRequestResult(option_id="allow_once", feedback="go on")

    def offers(self, session_id: str, root_id: str) -> bool:
        return True

    async def next(self) -> str:
        return await asyncio.wait_for(self.asked.get(), 20)


@asynccontextmanager
async def asking(host: Host) -> AsyncGenerator[Client]:
    client = Client()
    ask = asking_over(client, client.holds)  # type: ignore[arg-type]
    asks = offers.Offers(host, covers=client.offers, ask=ask, actor=CLIENT)
    client.look = asks.look
    asks.start()
    try:
        yield client
    finally:
        await asks.close()


async def ask(host: Host, session_id: str, approval_id: str) -> None:
    approval = Approval(
        approval_id=ApprovalId(approval_id),
        session_id=SessionId(session_id),
        root_id=SessionId(session_id),
        turn_id=TurnId("trn_x"),
        call_id=CallId(f"call_{approval_id}"),
        kind="permission",
        title="Run it",
        tool="run_command",
        subject=CommandSubject(command="npm test", cwd="/w"),
        options=(ApprovalOption(option_id="allow_once", name="Allow", kind="allow_once"),),
        created_at="2031-01-01T00:00:00.000Z",
    )
    await host.log.transact(lambda tx: host.approvals.ask(tx, approval, actor=CLIENT, fence=1))


def failing(function: Any, fault: Exception, times: int) -> tuple[Any, list[Exception]]:
    """`function`, which fails so often before it does anything; and its failures."""
    failed: list[Exception] = []

    async def fails(*given: Any, **more: Any) -> Any:
        if len(failed) < times:
            failed.append(fault)
            raise fault
        return await function(*given, **more)

    return fails, failed


async def decided(host: Host, approval_id: str) -> Any:
    return await asyncio.wait_for(host.approvals.wait(approval_id), 20)


@pytest.mark.parametrize("kind", ["storeBusy", "storeFull", "storeReadOnly"])
async def test_interrupts_57_an_answer_that_the_store_refuses_for_a_time_is_taken_then(
    tmp_path: Path, kind: str
) -> None:
    async with host_in(tmp_path) as host, asking(host) as client:
        session_id = await new_session(host, tmp_path)
        answer, failed = failing(host.approvals.answer, CallboardError(kind, "not now"), 2)
        host.approvals.answer = answer  # type: ignore[method-assign]
        await ask(host, session_id, "apr_1")
        resolution = await decided(host, "apr_1")
        assert (resolution.option_id, resolution.via, resolution.by, resolution.feedback) == (
            "allow_once", "request", CLIENT, "go on",
        )  # fmt: skip
        assert len(failed) == 2
        assert await client.next() == "apr_1"
        assert client.asked.empty(), "nobody is asked twice"


async def test_interrupts_57_an_answer_that_is_refused_for_good_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offers, "delays", lambda: itertools.repeat(0.0))
    async with host_in(tmp_path) as host, asking(host) as client:
        session_id = await new_session(host, tmp_path)
        tried: list[str] = []
        refused = asyncio.Event()

        async def refuses(approval_id: str, *_: Any, **__: Any) -> Any:
            tried.append(approval_id)
            refused.set()
            raise CallboardError("alreadyResolved", "somebody else was first")

        host.approvals.answer = refuses  # type: ignore[method-assign]
        await ask(host, session_id, "apr_1")
        await asyncio.wait_for(refused.wait(), 20)
        for _ in range(20):
            await asyncio.sleep(0)
        assert tried == [await client.next()]
        assert (await host.approvals.get("apr_1")).state == "pending"


@pytest.mark.parametrize(
    "fault", [CallboardError("storeBusy", "not now"), RuntimeError("something else")]
)
async def test_interrupts_56_what_is_asked_is_offered_though_the_log_could_not_be_read_for_a_time(
    tmp_path: Path, fault: Exception
) -> None:
    async with host_in(tmp_path) as host, asking(host) as client:
        await host.tasks.end()  # nobody else reads here
        # before anything is there to be read: no look from before can find what is asked
        page, failed = failing(host.log.page, fault, 2)
        host.log.page = page  # type: ignore[method-assign]
        session_id = await new_session(host, tmp_path)
        await ask(host, session_id, "apr_1")
        assert await client.next() == "apr_1"
        assert len(failed) == 2
        await ask(host, session_id, "apr_2")
        assert await client.next() == "apr_2"
        await decided(host, "apr_2")
        await ask(host, session_id, "apr_3")
        assert await client.next() == "apr_3"
        assert client.asked.empty(), "nobody is asked twice"


async def test_interrupts_59_what_waits_is_offered_though_it_could_not_be_read_for_a_time(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        await ask(host, session_id, "apr_1")
        async with asking(host) as client:
            page, failed = failing(host.approvals.page, CallboardError("storeBusy", "not now"), 2)
            host.approvals.page = page  # type: ignore[method-assign]
            client.look(client.offers)
            assert await client.next() == "apr_1"
            assert len(failed) == 2
            assert (await decided(host, "apr_1")).option_id == "allow_once"
