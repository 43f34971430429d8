import io
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import anyio
import pytest
from rich.console import Console

from callboard.cli.asking import Approver, Policy
from callboard.cli.exits import CommandError
from callboard_client import Client, ClientError
from callboard_rpc.common import SessionId
from callboard_rpc.server import ClientCapabilities

pytestmark = pytest.mark.anyio

OPTIONS = [
    {"optionId": "o1", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "o2", "name": "Allow always", "kind": "allow_always"},
    {"optionId": "o3", "name": "Reject", "kind": "reject_once"},
]
APPROVAL: dict[str, Any] = {
    "approvalId": "apr_1",
    "sessionId": "ses_1",
    "rootId": "ses_1",
    "turnId": "trn_1",
    "callId": "call_1",
    "tool": "run_command",
    "kind": "permission",
    "title": "Run a \x1b[31mcommand",
    "subject": {"type": "command", "command": "rm -rf \u202e/", "cwd": "/tmp"},
    "options": OPTIONS,
    "createdAt": "2026-01-01T00:00:00Z",
    "risk": "high",
}


class Typist:
    """A keyboard on which these keys are pressed; then nothing more happens."""

    def __init__(self, *keys: str | None) -> None:
        self.keys = list(keys)
        self.asked = anyio.Event()

    def single_keys(self) -> AbstractContextManager[None]:
        return nullcontext()

    unechoed = single_keys
    echoed = single_keys

    async def key(self) -> str | None:
        self.asked.set()
        if not self.keys:
            await anyio.sleep_forever()
        return self.keys.pop(0)

    line = key


class Desk:
    """An approver at work on a client of the fake server."""

    def __init__(self, policy: Policy, keyboard: Typist | None = None) -> None:
        self.out = io.StringIO()
        console = Console(file=self.out, width=200, highlight=False, markup=False)
        self.approver = Approver(
            root=SessionId("ses_1"),
            policy=policy,
            console=console,
            presenter=None,
            keyboard=keyboard,
        )


def begin(start: Any) -> Any:
    return start(capabilities=ClientCapabilities(approvals=True))


async def answered(start: Any, desk: Desk, **changes: Any) -> Any:
    async with begin(start) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(desk.approver.serve, client)
        await client.request("fake/ask", {"id": "q", "approval": {**APPROVAL, **changes}})
        reply = await reply_of(client)
        tasks.cancel_scope.cancel()
    return reply


async def reply_of(client: Client) -> Any:
    while True:
        replies = (await client.request("fake/seen", {}))["replies"]
        if "q" in replies:
            return replies["q"].get("result")


async def test_allow_chooses_once_and_never_always(start) -> None:
    desk = Desk("allow")
    assert (await answered(start, desk))["optionId"] == "o1"
    assert desk.approver.denied == 0
    with pytest.raises(BaseExceptionGroup) as caught:
        await answered(start, Desk("allow"), options=OPTIONS[1:])
    assert caught.group_contains(CommandError, match="apr_1 offers nothing")


@pytest.mark.parametrize("policy", ["deny", "rule", "ask"])
async def test_without_a_person_what_is_asked_is_denied_with_a_reason(
    start, policy: Policy
) -> None:
    desk = Desk(policy)
    reply = await answered(start, desk)
    assert reply["optionId"] == "o3"
    assert "Go on without it" in reply["feedback"]  # for the model
    assert desk.out.getvalue().count("not allowed: ") == 1  # for the person
    assert desk.approver.denied == 1


async def test_allow_does_not_answer_questions_that_need_a_person(start) -> None:
    desk = Desk("allow")
    reply = await answered(start, desk, kind="question")
    assert (reply["optionId"], desk.approver.denied) == ("o3", 1)


async def test_questions_of_other_sessions_are_left_to_others(start) -> None:
    desk = Desk("allow")
    assert (await answered(start, desk, rootId="ses_9"))["defer"] is True
    assert desk.out.getvalue() == ""


async def test_a_key_chooses_and_other_keys_do_nothing(start) -> None:
    desk = Desk("ask", Typist("x", "9", "0", "²", "2"))
    assert (await answered(start, desk))["optionId"] == "o2"


async def test_a_rejection_carries_what_the_person_says(start) -> None:
    desk = Desk("ask", Typist("3", " use git clean "))
    reply = await answered(start, desk)
    assert (reply["optionId"], reply["feedback"]) == ("o3", "use git clean")
    assert desk.approver.denied == 0


@pytest.mark.parametrize("key", ["d", None])
async def test_a_person_can_leave_it_to_others(start, key: str | None) -> None:
    desk = Desk("ask", Typist(key))
    assert (await answered(start, desk))["defer"] is True
    assert "left to other clients" in desk.out.getvalue()


async def test_the_question_shows_command_folder_risk_and_nothing_to_obey(start) -> None:
    desk = Desk("ask", Typist("1"))
    await answered(start, desk)
    shown = desk.out.getvalue()
    for part in ("Run a command", "high risk", "$ rm -rf /", "/tmp", "1 Allow once", "3 Reject"):
        assert part in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


async def test_an_answer_elsewhere_ends_the_asking(start) -> None:
    keyboard = Typist()
    desk = Desk("ask", keyboard)
    async with begin(start) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(desk.approver.serve, client)
        await client.request("fake/ask", {"id": "q", "approval": APPROVAL})
        await keyboard.asked.wait()
        await client.request("fake/withdraw", {"id": "q"})
        await reply_of(client)
        keyboard.keys.append("1")
        await client.request("fake/ask", {"id": "q2", "approval": APPROVAL})
        while "q2" not in (await client.request("fake/seen", {}))["replies"]:
            pass
        tasks.cancel_scope.cancel()
    assert "answered elsewhere" in desk.out.getvalue()


async def test_the_approver_ends_with_the_client(start) -> None:
    desk = Desk("deny")
    with pytest.raises(BaseExceptionGroup) as caught:
        async with begin(start) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(desk.approver.serve, client)
            await client.request("fake/crash", {})
    assert caught.group_contains(ClientError)
