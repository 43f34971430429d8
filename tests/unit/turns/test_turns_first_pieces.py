"""Whoever begins to listen while a message streams, and asks for its draft then, has every piece of it once.

No draft is saved in these tests by itself, and none needs to be: what is read is what was passed on.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from turns_kit import PATIENCE_S, Pause, Scene, Stage, calls, stage, texts

from callboard.models.base import ModelEvent, ModelRequest, Stop, TextDelta, ThoughtDelta
from callboard.rpc.handlers.client import Clients
from callboard.rpc.service import handlers_of
from callboard.turns.deltas import Delta
from callboard_rpc.common import SessionId
from callboard_rpc.sessions import Draft, SessionGetParams
from harness.inside import host_in

pytestmark = pytest.mark.anyio

PIECES = [
    ("thought", "Let me "), ("thought", "see. "), ("answer", "One, "), ("answer", "two, "), ("answer", "three.")
]  # fmt: skip
SELDOM = "[draft]\ninterval_ms = 60000\nbytes = 1000000\n"
HALF_A_SECRET = " sk-"
"""What may be the beginning of a key is passed on with the message's end."""


@asynccontextmanager
async def at_length(folder: Path, *scenes: Scene) -> AsyncGenerator[Stage]:
    """A host that saves no draft for as long as a test takes."""
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config" / "config.toml").write_text(SELDOM, "utf-8")
    async with stage(folder, *scenes) as s:
        yield s


async def get(s: Stage, session_id: str) -> Any:
    handler = handlers_of(s.host, Clients(s.host))["session/get"]
    result: Any = await handler(None, SessionGetParams(session_id=SessionId(session_id)))  # type: ignore[arg-type]
    return result


@define
class Listener:
    """A client: it puts the draft and the deltas that it gets together by their indexes."""

    said: dict[str, str] = field(factory=lambda: {"thought": "", "answer": ""})
    next: dict[str, int] = field(factory=lambda: {"thought": 0, "answer": 0})
    early: list[Delta] | None = field(factory=list[Delta])

    def take(self, delta: Delta) -> None:
        if self.early is not None:
            self.early.append(delta)
        elif delta.index >= self.next[delta.kind]:
            assert delta.index == self.next[delta.kind], "a piece is missing"
            self.next[delta.kind] += 1
            self.said[delta.kind] += delta.text

    def begin(self, draft: Draft | None) -> None:
        if draft is not None:
            self.said = {"thought": draft.thought, "answer": draft.answer}
            self.next |= draft.next_index
        early, self.early = self.early or [], None
        for delta in early:
            self.take(delta)


def piecewise(pauses: list[Pause], tail: str = "") -> Scene:
    """Waits for the test before each piece, and after the last."""

    async def scene(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        for pause, (kind, text) in zip(pauses, PIECES, strict=False):
            await pause.here()
            yield ThoughtDelta(text=text) if kind == "thought" else TextDelta(text=text)
        if tail:
            yield TextDelta(text=tail)
        await pauses[-1].here()
        yield Stop(reason="end_turn")

    return scene


@pytest.mark.parametrize("begun", range(len(PIECES) + 1))
async def test_who_comes_after_any_number_of_pieces_has_all_of_them(
    tmp_path: Path, begun: int
) -> None:
    pauses = [Pause() for _ in range(len(PIECES) + 1)]
    async with at_length(tmp_path, piecewise(pauses)) as s:
        session_id = await s.session()
        await s.say(session_id, "go")
        client = Listener()
        for number, pause in enumerate(pauses):
            await pause.came()
            if number == begun:
                s.host.deltas.listen(client.take)
                client.begin((await get(s, session_id)).draft)
                assert (await s.host.log.query("SELECT 1 FROM drafts")) == []
            pause.open.set()
        await s.idle(session_id)
        assert client.said == {"thought": "Let me see. ", "answer": "One, two, three."}
        assert (await get(s, session_id)).draft is None


async def test_pieces_that_come_while_the_draft_is_read_are_behind_it(tmp_path: Path) -> None:
    pauses = [Pause() for _ in range(len(PIECES) + 1)]
    async with at_length(tmp_path, piecewise(pauses)) as s:
        session_id = await s.session()
        await s.say(session_id, "go")
        await pauses[0].came()
        pauses[0].open.set()
        await pauses[1].came()
        client = Listener()
        s.host.deltas.listen(client.take)
        reading = asyncio.ensure_future(get(s, session_id))
        for pause in pauses[1:-1]:
            pause.open.set()
        client.begin((await reading).draft)
        pauses[-1].open.set()
        await s.idle(session_id)
        assert client.said == {"thought": "Let me see. ", "answer": "One, two, three."}


async def test_a_message_that_is_whole_is_a_draft_until_it_is_in_the_log(tmp_path: Path) -> None:
    """Also with the end of it, which had waited since it looks like the beginning of a secret. Nothing is
    written while the draft is read: the store is held by somebody else."""
    pauses = [Pause() for _ in range(len(PIECES) + 1)]
    async with at_length(tmp_path, piecewise(pauses, HALF_A_SECRET)) as s:
        session_id = await s.session()
        await s.say(session_id, "go")
        for pause in pauses[:-1]:
            await pause.came()
            pause.open.set()
        await pauses[-1].came()
        assert (await get(s, session_id)).draft.answer == "One, two, three. "
        whole, go_on = asyncio.Event(), threading.Event()
        s.host.deltas.listen(lambda delta: whole.set())
        held = s.host.log.submit(lambda _: go_on.wait(PATIENCE_S))
        pauses[-1].open.set()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await whole.wait()
            draft = (await get(s, session_id)).draft
            assert draft.answer == "One, two, three." + HALF_A_SECRET
            assert draft.next_index == {"thought": 2, "answer": 5}
        finally:
            go_on.set()
        assert await held
        await s.idle(session_id)
        assert (await get(s, session_id)).draft is None


async def test_a_draft_is_of_the_message_that_streams_and_gone_with_its_commit(
    tmp_path: Path,
) -> None:
    first, second = Pause(), Pause()

    def then_asks(pause: Pause) -> Scene:
        async def scene(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta(text="First I look.")
            await pause.here()
            async for event in calls(("update_plan", {"entries": []}))(request):
                yield event

        return scene

    async def ends(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        await second.here()
        yield TextDelta(text="Now I know.")
        yield Stop(reason="end_turn")

    async with at_length(tmp_path, then_asks(first), ends) as s:
        session_id = await s.session()
        await s.say(session_id, "go")
        await first.came()
        assert (await get(s, session_id)).draft.answer == "First I look."
        first.open.set()
        await second.came()
        assert (await get(s, session_id)).draft is None, "it is in the log"
        second.open.set()
        await s.idle(session_id)
        assert texts(await s.log(session_id))[-2:] == ["First I look.", "Now I know."]


async def test_another_process_reads_what_was_saved(tmp_path: Path) -> None:
    pauses = [Pause() for _ in range(len(PIECES) + 1)]
    async with at_length(tmp_path, piecewise(pauses)) as s, host_in(tmp_path) as elsewhere:
        session_id = await s.session()
        await s.say(session_id, "go")
        await pauses[0].came()
        pauses[0].open.set()
        await pauses[1].came()
        other = Stage(elsewhere, s.puppet, tmp_path)
        assert (await get(s, session_id)).draft.thought == "Let me "
        assert (await get(other, session_id)).draft is None
        live = s.host.dispatcher.live(session_id)
        assert live is not None
        await s.host.log.append_draft(
            session_id=session_id,
            turn_id=live.turn_id,
            message_id="msg_1",
            answer="",
            thought="Let me ",
            next_index='{"thought":1}',
        )
        assert (await get(other, session_id)).draft.thought == "Let me "
        for pause in pauses:
            pause.open.set()
        await s.idle(session_id)


async def test_a_secret_that_streamed_in_pieces_is_in_no_draft(tmp_path: Path) -> None:
    pause = Pause()
    key = "sk-" + "Ab1" * 16

    async def scene(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        for piece in ("see ", key[:10], key[10:], " and ", "x" * 300_000):
            yield TextDelta(text=piece)
        await pause.here()
        yield Stop(reason="end_turn")

    async with at_length(tmp_path, scene) as s:
        session_id = await s.session()
        await s.say(session_id, "go")
        await pause.came()
        draft = (await get(s, session_id)).draft
        assert draft.answer.startswith("see [redacted:openai_key] and xxx")
        assert "Ab1" not in draft.answer
        pause.open.set()
        await s.idle(session_id)
