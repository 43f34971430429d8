from typing import Any

import anyio
import pytest

from callboard_client import Client, ClientError, ConnectionLost
from callboard_rpc.server import ClientCapabilities

pytestmark = pytest.mark.anyio

TAKES = ClientCapabilities(approvals=True)
APPROVAL: dict[str, Any] = {
    "approvalId": "apr_1",
    "sessionId": "ses_1",
    "rootId": "ses_1",
    "turnId": "trn_1",
    "callId": "call_1",
    "tool": "run_command",
    "kind": "permission",
    "title": "Run a command",
    "subject": {"type": "command", "command": "ls", "cwd": "/"},
    "options": [
        {"optionId": "once", "name": "Allow once", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ],
    "createdAt": "2026-01-01T00:00:00Z",
}


async def ask(client: Client, key: str = "q1", approval_id: str = "apr_1") -> None:
    approval = {**APPROVAL, "approvalId": approval_id}
    await client.request("fake/ask", {"id": key, "approval": approval})


async def reply(client: Client, key: str = "q1") -> Any:
    while True:
        replies = (await client.request("fake/seen", {}))["replies"]
        if key in replies:
            return replies[key]


async def test_an_answer_goes_back_with_its_feedback(start) -> None:
    async with start(capabilities=TAKES) as client:
        await ask(client)
        pending = await anext(client.approval_requests())
        assert pending.approval.title == "Run a command"
        assert pending.answer("no", feedback="use the other file")
        assert (await reply(client))["result"] == {
            "optionId": "no",
            "feedback": "use the other file",
            "defer": False,
        }
        assert not pending.answer("once")


async def test_deferring_leaves_it_to_others(start) -> None:
    async with start(capabilities=TAKES) as client:
        await ask(client)
        (await anext(client.approval_requests())).defer()
        assert (await reply(client))["result"]["defer"] is True


async def test_an_option_that_was_not_offered_is_refused_and_nothing_is_sent(start) -> None:
    async with start(capabilities=TAKES) as client:
        await ask(client)
        pending = await anext(client.approval_requests())
        with pytest.raises(ClientError, match="once, no"):
            pending.answer("always")
        assert pending.state == "open"


async def test_another_answer_withdraws_the_question(start) -> None:
    async with start(capabilities=TAKES) as client:
        await ask(client)
        pending = await anext(client.approval_requests())
        await client.request("fake/withdraw", {"id": "q1"})
        assert await pending.wait_settled() == "withdrawn"
        assert not pending.answer("once")
        assert (await reply(client))["error"]["code"] == -32800


async def test_a_question_withdrawn_before_anyone_looked_is_never_seen(start) -> None:
    async with start(capabilities=TAKES) as client:
        await ask(client, "q1", "apr_1")
        await client.request("fake/withdraw", {"id": "q1"})
        await reply(client, "q1")
        await ask(client, "q2", "apr_2")
        pending = await anext(client.approval_requests())
        assert pending.approval_id == "apr_2"


async def test_a_restarted_server_asks_again_and_the_old_question_is_withdrawn(start) -> None:
    async with start(capabilities=TAKES, restart=True) as client:
        requests = client.approval_requests()
        await ask(client)
        old = await anext(requests)
        with pytest.raises(ConnectionLost):
            await client.request("fake/crash", {})
        assert old.withdrawn
        await ask(client, "q9")
        again = await anext(requests)
        assert again.approval_id == old.approval_id
        assert again.answer("once")
        assert (await reply(client, "q9"))["result"]["optionId"] == "once"


async def test_the_iterator_ends_with_the_client(start) -> None:
    seen: list[str] = []
    async with anyio.create_task_group() as tasks, start(capabilities=TAKES) as client:

        async def watch() -> None:
            async for pending in client.approval_requests():
                seen.append(pending.approval_id)
            seen.append("end")

        tasks.start_soon(watch)
        await client.server.ping()
    assert seen == ["end"]


async def test_a_client_that_did_not_declare_approvals_is_told(start) -> None:
    async with start() as client:
        with pytest.raises(ClientError, match="capabilities"):
            client.approval_requests()
