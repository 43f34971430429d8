"""Terminals of an editor that answers late, or not at all."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from callboard.acp.agent.terminals import EditorTerminals
from callboard.acp.peer import Peer
from callboard.tools.base import TerminalCommand, TerminalEnd

pytestmark = pytest.mark.anyio


class Wire:
    """What goes to an editor, and the answers that come."""

    def __init__(self) -> None:
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        spawn: Any = asyncio.get_running_loop().create_task
        self.peer = Peer("agent", send=self._put, spawn=spawn)
        self.shown: list[tuple[str, str]] = []

    def _put(self, body: bytes) -> None:
        self._sent.put_nowait(orjson.loads(body))

    async def next(self, method: str) -> dict[str, Any]:
        message = await self._sent.get()
        assert message["method"] == method
        return message

    def answer(self, request: dict[str, Any], result: Any) -> None:
        self.peer.take({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def terminals(self, begin_s: float) -> EditorTerminals:
        drained = asyncio.Event()
        drained.set()
        editor = SimpleNamespace(peer=self.peer, conversation=SimpleNamespace(drained=drained))
        follower = SimpleNamespace(
            session_id="ses_1", show_terminal=lambda *given: self.shown.append(given)
        )
        return EditorTerminals(cast("Any", editor), cast("Any", follower), begin_s=begin_s)


def command(**more: Any) -> TerminalCommand:
    given: dict[str, Any] = {
        "call_id": "call_1",
        "argv": ("/bin/sh", "-c", "true"),
        "cwd": "/",
        "environment": {},
        "time_limit_s": 60.0,
        "kept_bytes": 1000,
        **more,
    }
    return TerminalCommand(**given)


async def test_a_terminal_that_comes_too_late_is_ended_and_released() -> None:
    wire = Wire()
    end = await wire.terminals(begin_s=0.0).run(command(), lambda _: None)
    assert isinstance(end, TerminalEnd) and end.unknown is not None
    create = await wire.next("terminal/create")
    wire.answer(create, {"terminalId": "t"})
    kill = await wire.next("terminal/kill")
    wire.answer(kill, {})
    release = await wire.next("terminal/release")
    wire.answer(release, {})
    assert {kill["params"]["terminalId"], release["params"]["terminalId"]} == {"t"}
    assert not wire.shown, "its call is over"


async def test_a_refusal_that_comes_too_late_is_no_terminal() -> None:
    wire = Wire()
    end = await wire.terminals(begin_s=0.0).run(command(), lambda _: None)
    assert end is not None, "it may have been begun: it is not run here"
    create = await wire.next("terminal/create")
    wire.answer(create, {"terminalId": ""})
    wire.peer.notify("session/update", {})
    await wire.next("session/update")


async def test_an_editor_that_goes_leaves_the_end_unknown() -> None:
    wire = Wire()
    running = asyncio.ensure_future(wire.terminals(begin_s=60.0).run(command(), lambda _: None))
    await wire.next("terminal/create")
    wire.peer.close("the editor is gone")
    end = await running
    assert end is not None and end.unknown == "the editor is gone"
