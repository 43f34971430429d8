"""One conversation of the Agent Client Protocol: order, answers, cancels, and whatever else may come."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from attrs import define, field

from callboard.acp.contract import server, services, sessions
from callboard.acp.peer import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    OVERLOADED,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    Handler,
    Heed,
    Incoming,
    Peer,
    PeerClosed,
    PeerError,
    Served,
)

pytestmark = pytest.mark.anyio


@define
class Line:
    """A peer on the agent's side, and what it has sent."""

    handlers: dict[str, Handler] = field(factory=dict[str, Handler])
    heeds: dict[str, Heed] = field(factory=dict[str, Heed])
    most: int = 8
    sent: list[dict[str, Any]] = field(factory=list[dict[str, Any]])
    changed: asyncio.Event = field(factory=asyncio.Event)
    peer: Peer = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.peer = Peer("agent", send=self._sent, spawn=_spawn, max_in_flight=self.most)
        self.peer.serve(Served(handlers=self.handlers, heeds=self.heeds, fault=_fault))

    def _sent(self, body: bytes) -> None:
        self.sent.append(json.loads(body))
        self.changed.set()

    def put(self, message: Any) -> None:
        self.peer.receive(json.dumps(message).encode())

    def ask(self, request_id: int | str, method: str, **params: Any) -> None:
        self.put({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})

    def tell(self, method: str, **params: Any) -> None:
        self.put({"jsonrpc": "2.0", "method": method, "params": params})

    async def until(self, holds: Callable[[list[dict[str, Any]]], bool]) -> None:
        async with asyncio.timeout(30):
            while not holds(self.sent):
                self.changed.clear()
                await self.changed.wait()

    async def answer(self, request_id: int | str | None) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            return [m for m in self.sent if "method" not in m and m["id"] == request_id]

        await self.until(lambda _: bool(found()))
        (answer,) = found()
        return answer


def _spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)


def _fault(fault: BaseException, method: str) -> dict[str, Any]:
    code = INVALID_PARAMS if isinstance(fault, ValueError) else INTERNAL_ERROR
    return {"code": code, "message": f"{method}: {fault}"}


async def _empty(_: Incoming, __: Any) -> None:
    return None


async def test_an_empty_result_is_an_object() -> None:
    line = Line(handlers={"authenticate": _empty})
    line.ask(1, "authenticate", methodId="any")
    assert await line.answer(1) == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_params_come_as_their_class_and_those_that_do_not_fit_are_refused_by_name() -> None:
    taken: list[Any] = []

    async def take(_: Incoming, params: Any) -> None:
        taken.append(params)

    line = Line(handlers={"authenticate": take, "_own/thing": take})
    line.ask(1, "authenticate", methodId="a")
    line.ask(2, "_own/thing", anything=1)
    line.ask("three", "authenticate")
    await line.answer(1)
    await line.answer(2)
    error = (await line.answer("three"))["error"]
    assert taken == [server.AuthenticateRequest(method_id="a"), {"anything": 1}]
    assert error["code"] == INVALID_PARAMS
    assert "$.methodId" in error["message"]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"{", PARSE_ERROR),
        (b"\xff", PARSE_ERROR),
        (b"[]", INVALID_REQUEST),
        (b"7", INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":1,"method":"authenticate"}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"authenticate"}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"authenticate"}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing/like/it"}', METHOD_NOT_FOUND),
        (b'{"jsonrpc":"2.0","id":1,"method":"session/update"}', METHOD_NOT_FOUND),
        (b'{"jsonrpc":"2.0","id":1,"params":' + b"[" * 300 + b"]" * 300 + b"}", INVALID_PARAMS),
    ],
)
async def test_what_is_no_request_is_refused_and_the_next_one_is_answered(
    frame: bytes, code: int
) -> None:
    line = Line(handlers={"authenticate": _empty})
    line.peer.receive(frame)
    line.ask(9, "authenticate", methodId="a")
    assert (await line.answer(9))["result"] == {}
    (refusal,) = [m for m in line.sent if "error" in m]
    assert refusal["error"]["code"] == code


async def test_an_id_that_is_in_use_and_one_request_too_many_are_refused() -> None:
    hold = asyncio.Event()

    async def wait(_: Incoming, __: Any) -> None:
        await hold.wait()

    line = Line(handlers={"logout": wait}, most=2)
    line.ask(1, "logout")
    line.ask(1, "logout")
    line.ask(2, "logout")
    line.ask(3, "logout")
    assert line.peer.in_flight == 2
    refused = {m["id"]: m["error"]["code"] for m in line.sent}
    assert refused == {1: INVALID_REQUEST, 3: OVERLOADED}
    hold.set()
    await line.peer.idle()
    assert line.peer.in_flight == 0


async def test_notifications_are_dealt_with_in_place_and_a_broken_one_breaks_nothing() -> None:
    heard: list[Any] = []

    def hear(params: sessions.CancelNotification) -> None:
        heard.append(params.session_id)
        if params.session_id == "bad":
            raise RuntimeError("a fault of ours")

    line = Line(heeds={"session/cancel": hear})
    line.tell("session/cancel", sessionId="bad")
    line.tell("session/cancel", sessionId=7)
    line.tell("unheard/of")
    line.tell("session/cancel", sessionId="good")
    assert heard == ["bad", "good"]
    assert line.sent == []


async def test_what_follows_a_reply_follows_it_and_never_an_error() -> None:
    line = Line()

    async def good(incoming: Incoming, _: Any) -> None:
        incoming.after_reply(lambda: line.peer.notify("session/update", {"after": "good"}))

    async def bad(incoming: Incoming, _: Any) -> None:
        incoming.after_reply(lambda: line.peer.notify("session/update", {"after": "bad"}))
        raise ValueError("no")

    line.handlers |= {"_good": good, "_bad": bad}
    line.ask(1, "_bad")
    line.ask(2, "_good")
    await line.until(lambda sent: len(sent) == 3)
    assert [m.get("id") for m in line.sent] == [1, 2, None]
    assert line.sent[0]["error"] == {"code": INVALID_PARAMS, "message": "_bad: no"}


async def test_a_cancelled_request_is_answered_so_even_before_it_has_begun() -> None:
    async def wait(_: Incoming, __: Any) -> None:
        await asyncio.Event().wait()

    line = Line(handlers={"logout": wait})
    line.ask(1, "logout")
    line.tell("$/cancel_request", requestId=1)
    line.ask("b", "logout")
    await asyncio.sleep(0)
    line.tell("$/cancel_request", requestId="b")
    line.tell("$/cancel_request", requestId=99)
    line.tell("$/cancel_request")
    for request_id in (1, "b"):
        assert (await line.answer(request_id))["error"]["code"] == REQUEST_CANCELLED


async def test_a_handler_that_sees_to_its_cancel_itself_answers_as_it_likes() -> None:
    cancelled = asyncio.Event()

    async def prompt(incoming: Incoming, _: Any) -> sessions.PromptResponse:
        incoming.on_cancel = cancelled.set
        await cancelled.wait()
        return sessions.PromptResponse(stop_reason="cancelled")

    line = Line(handlers={"session/prompt": prompt})
    line.ask(1, "session/prompt", sessionId="s", prompt=[])
    await asyncio.sleep(0)
    line.tell("$/cancel_request", requestId=1)
    assert (await line.answer(1))["result"] == {"stopReason": "cancelled"}


# --- what we ask ----------------------------------------------------------------------------------


async def _asks(line: Line, **more: Any) -> "asyncio.Task[Any]":
    params = services.ReadTextFileRequest(session_id="s", path="/a")
    before = len(line.sent)
    task = asyncio.ensure_future(line.peer.request("fs/read_text_file", params, **more))
    await line.until(lambda sent: len(sent) > before)
    return task


async def test_an_answer_comes_as_its_class_and_only_once() -> None:
    line = Line()
    task = await _asks(line)
    assert line.sent[0]["params"] == {"sessionId": "s", "path": "/a"}
    request_id = line.sent[0]["id"]
    for content in ("first", "second"):
        line.put({"jsonrpc": "2.0", "id": request_id, "result": {"content": content}})
    assert await task == services.ReadTextFileResponse(content="first")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"code": -32002, "message": "no such file"}, "no such file"),
        ("just a text", "just a text"),
        ({"code": "E", "message": ""}, "an error without a message"),
    ],
)
async def test_errors_of_any_shape_are_errors(error: Any, message: str) -> None:
    line = Line()
    task = await _asks(line)
    line.put({"jsonrpc": "2.0", "id": line.sent[0]["id"], "error": error})
    with pytest.raises(PeerError) as raised:
        await task
    assert raised.value.message == message


async def test_a_result_of_the_wrong_shape_and_an_answer_to_nothing_are_told_apart() -> None:
    line = Line()
    task = await _asks(line)
    line.put({"jsonrpc": "2.0", "id": 77, "result": {}})
    line.put({"jsonrpc": "2.0", "id": line.sent[0]["id"], "result": {"content": 7}})
    with pytest.raises(PeerError) as raised:
        await task
    assert raised.value.code == INVALID_PARAMS


async def test_whoever_waits_no_more_says_so_and_a_late_answer_is_ignored() -> None:
    line = Line()
    late = await _asks(line, timeout_s=0)
    with pytest.raises(TimeoutError):
        await late
    gone = await _asks(line)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    told = [m["params"]["requestId"] for m in line.sent if m.get("method") == "$/cancel_request"]
    assert told == [1, 2]
    line.put({"jsonrpc": "2.0", "id": 1, "result": {"content": "late"}})


async def test_the_end_of_the_other_side_fails_what_was_asked_at_once() -> None:
    line = Line(handlers={"logout": _empty})
    task = await _asks(line)
    line.peer.close("it is gone")
    with pytest.raises(PeerClosed, match="it is gone"):
        await task
    with pytest.raises(PeerClosed):
        await line.peer.request("fs/read_text_file", {})
    before = len(line.sent)
    line.peer.notify("session/update", {})
    line.ask(5, "logout")
    await line.peer.idle()
    assert len(line.sent) == before
