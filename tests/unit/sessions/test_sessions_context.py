"""What the model is told in a session that lives: prefixes that only grow, summaries, large texts."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sessions_kit import Gate, Player, asks_for, host_with, says

from callboard.host import Host
from callboard.models.base import (
    AssistantMessage,
    ModelError,
    ModelMessage,
    ModelRequest,
    Text,
    ToolMessage,
    ToolUse,
    UserMessage,
)
from callboard.sessions.sizes import characters
from callboard.sessions.transcript import SUMMARY_INTRODUCTION
from callboard_rpc.common import Failure, Usage
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say

pytestmark = pytest.mark.anyio


def _flat(messages: Sequence[ModelMessage]) -> list[Any]:
    out: list[Any] = []
    for message in messages:
        match message:
            case ToolMessage(outputs=outputs):
                out += [("result", o) for o in outputs]
            case UserMessage(blocks=blocks):
                out += [("user", b) for b in blocks]
            case AssistantMessage(blocks=blocks):
                out += [("assistant", b) for b in blocks]
    return out


def _texts(request: ModelRequest, who: type[Any] = UserMessage) -> list[str]:
    return [
        b.text
        for m in request.messages
        if isinstance(m, who)
        for b in m.blocks
        if isinstance(b, Text)
    ]


async def _turn(host: Host, session_id: str, text: str, **more: Any) -> Any:
    await say(host, session_id, text, **more)
    waited = await idle(host, session_id)
    return waited.turn


async def test_coordination_66_each_request_extends_the_one_before_within_and_across_turns(
    tmp_path: Path,
) -> None:
    gate = Gate()
    player = Player(
        [
            asks_for(("look", {"size": 10}), ("look", {"size": 20}), text="Looking."),
            gate.before(asks_for(("look", {"size": 30}))),
            asks_for(("nothing_like_this", {}), ("look", {"size": "wrong"})),
            says("first"),
            asks_for(("look", {"size": 40})),
            says("second"),
            says("third"),
        ]
    )
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "one")
        await gate.came()
        await say(host, session_id, "a steer", delivery="steer")
        gate.opened.set()
        await idle(host, session_id)
        await _turn(host, session_id, "two 🙂")
        await host.sessions.update(
            session_id, by=CLIENT, title="t", pinned=True, metadata=None, mode="ask", model="x/y"
        )
        await _turn(host, session_id, "three")
    assert len(player.requests) == 7
    for before, after in zip(player.requests, player.requests[1:], strict=False):
        assert after.system == before.system
        assert after.tools == before.tools
        assert after.session_key == before.session_key == session_id
        assert _flat(after.messages)[: len(_flat(before.messages))] == _flat(before.messages)
    assert _texts(player.requests[-1]) == ["one", "a steer", "two 🙂", "three"]


async def test_coordination_66_the_prefix_is_the_same_after_a_restart(tmp_path: Path) -> None:
    player = Player([asks_for(("look", {}), text="Hm."), says("first")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await _turn(host, session_id, "one")
    async with host_with(tmp_path, player) as host:
        await _turn(host, session_id, "two")
    _, before, after = player.requests
    assert _flat(after.messages)[: len(_flat(before.messages))] == _flat(before.messages)
    assert (after.system, after.tools) == (before.system, before.tools)


async def test_audit_shows_the_running_turn_its_own_results_and_later_turns_only_words(
    tmp_path: Path,
) -> None:
    player = Player(
        [
            asks_for(("look", {"size": 10}), text="Looking."),
            asks_for(("look", {"size": 20})),
            says("seen it"),
            asks_for(("look", {"size": 30})),
            says("again"),
        ]
    )
    async with host_with(tmp_path, player, config='[context]\ntools = "audit"\n') as host:
        session_id = await new_session(host, tmp_path)
        await _turn(host, session_id, "one")
        await _turn(host, session_id, "two")
    results = [
        sum(len(m.outputs) for m in r.messages if isinstance(m, ToolMessage))
        for r in player.requests
    ]
    assert results == [0, 1, 2, 0, 1]
    assert _texts(player.requests[-1], AssistantMessage) == ["Looking.", "seen it"]
    calls = [
        b
        for m in player.requests[-1].messages
        if isinstance(m, AssistantMessage)
        for b in m.blocks
        if isinstance(b, ToolUse)
    ]
    assert [c.arguments for c in calls] == [{"size": 30}]


async def test_large_texts_come_back_whole_for_the_model(tmp_path: Path) -> None:
    large = "".join(f"{n} ünïcödé 🙂\n" for n in range(9_000))
    player = Player([asks_for(("look", {"size": 200_000})), says("a" * 150_000)], window=1_000_000)
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await _turn(host, session_id, large)
        await _turn(host, session_id, "and?")
        kept = await log_of(host, session_id)
        assert max(len(r.data) for r in kept) < 64 * 1024
    async with host_with(tmp_path, player) as host:
        await _turn(host, session_id, "after a restart")
    for request in player.requests:
        assert _texts(request)[0] == large
    for request in player.requests[2:]:
        assert _texts(request, AssistantMessage)[0] == "a" * 150_000
        (outputs,) = [m.outputs for m in request.messages if isinstance(m, ToolMessage)]
        assert outputs[0].text == "seen " * 40_000


# --- the command ------------------------------------------------------------------------------


async def _compact(host: Host, session_id: str, instructions: str | None = None) -> Any:
    return await host.compacting.compact(session_id, by=CLIENT, instructions=instructions)


async def test_messaging_18_a_summary_stands_for_all_before_and_a_post_meanwhile_stays(
    tmp_path: Path,
) -> None:
    gate = Gate()
    usage = Usage(requests=1, input_tokens=7, output_tokens=3)
    player = Player(
        [
            says("first"),
            says("second"),
            gate.before(says("THE SUMMARY", usage=usage)),
            says("third"),
        ]
    )
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await _turn(host, session_id, "one")
        await _turn(host, session_id, "two")
        compacting = asyncio.ensure_future(_compact(host, session_id, "Mind the gap."))
        await gate.came()
        posted = await say(host, session_id, "meanwhile")
        assert posted.outcome == "queued"  # a summary and a run exclude each other
        gate.opened.set()
        record = await compacting
        await idle(host, session_id)

        assert record.value.text == "THE SUMMARY"
        assert record.value.author.kind == "system"
        asked = player.requests[2]
        assert _texts(asked)[:2] == ["one", "two"]
        assert _texts(asked)[-1].endswith("Mind the gap.")
        assert asked.tools == ()
        answered = player.requests[3]
        assert _texts(answered) == [SUMMARY_INTRODUCTION + "THE SUMMARY", "meanwhile"]
        assert _texts(answered, AssistantMessage) == []
        session = await host.reading.session(session_id)
        assert session.usage is not None
        assert session.usage.input_tokens == 7  # what a summary takes is counted

        await _compact(host, session_id)
        assert _texts(player.requests[-1])[:2] == [
            SUMMARY_INTRODUCTION + "THE SUMMARY", "meanwhile",
        ]  # nothing from before the last summary is read again  # fmt: skip


async def test_messaging_4_too_little_is_not_summarised(tmp_path: Path) -> None:
    player = Player([says("first")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await _turn(host, session_id, "one")
        head = host.log.head
        assert await _compact(host, session_id) is None
        assert host.log.head == head
        assert len(player.requests) == 1


def _fails(started: bool) -> Any:
    async def answer(_: ModelRequest) -> Any:
        failure = Failure(kind="modelError", message="it broke", retryable=False)
        raise ModelError(failure, started=started)
        yield

    return answer


@pytest.mark.parametrize("answer", [_fails(started=False), says(" \n")], ids=["error", "blank"])
async def test_messaging_4_a_summary_that_fails_writes_nothing_and_frees_the_session(
    tmp_path: Path, answer: Any
) -> None:
    player = Player([says("first"), says("second"), answer])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await _turn(host, session_id, "one")
        await _turn(host, session_id, "two")
        head = host.log.head
        with pytest.raises(CallboardError) as error:
            await _compact(host, session_id)
        assert error.value.kind == "modelError"
        assert host.log.head == head
        turn = await _turn(host, session_id, "three")
        assert turn.state == "completed"
        assert _texts(player.requests[-1]) == ["one", "two", "three"]


async def test_a_session_that_runs_is_closed_or_unknown_is_not_summarised(tmp_path: Path) -> None:
    gate = Gate()
    player = Player([says("1"), says("2"), gate.before(says("3"))])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await _turn(host, session_id, "one")
        await _turn(host, session_id, "two")
        await say(host, session_id, "three")
        await gate.came()
        for kind, each in (("turnInProgress", session_id), ("sessionNotFound", "ses_none")):
            with pytest.raises(CallboardError) as error:
                await _compact(host, each)
            assert error.value.kind == kind
        gate.opened.set()
        await idle(host, session_id)
        await host.sessions.close(session_id, by=CLIENT)
        with pytest.raises(CallboardError) as error:
            await _compact(host, session_id)
        assert error.value.kind == "sessionClosed"
        assert [r.type for r in await log_of(host, session_id)].count("summary") == 0


# --- by itself --------------------------------------------------------------------------------

_SMALL = "[context]\nreserved_output = 500\ncompact_at = 0.8\n"


async def test_a_window_that_fills_is_summarised_with_the_person_s_words_kept(
    tmp_path: Path,
) -> None:
    player = Player(
        [
            says("x" * 6_000),
            says("y" * 6_000),
            says("SHORT"),
            says("after"),
        ]
    )
    async with host_with(tmp_path, player, config=_SMALL) as host:
        session_id = await new_session(host, tmp_path)
        await _turn(host, session_id, "first wish")
        # room for one long answer beside prompt and tools, and not for two
        player.window = 500 + round((characters(player.requests[0]) + 9_000) / 4 / 0.8)
        await _turn(host, session_id, "second wish")
        turn = await _turn(host, session_id, "third wish")
        assert turn.final_text == "after"
        records = await log_of(host, session_id)
        (summary,) = [r for r in records if r.type == "summary"]
        assert summary.value.reason == "window"
        assert summary.turn_id == turn.turn_id
        for words in ("first wish", "second wish", "third wish"):
            assert words in summary.value.text
        (only,) = _texts(player.requests[-1])
        assert only.startswith(SUMMARY_INTRODUCTION + "SHORT")


async def test_interrupts_75_compaction_is_bounded_and_what_fits_is_sent(tmp_path: Path) -> None:
    """Summaries that do not help are not made for ever."""
    usage = Usage(requests=1, input_tokens=1, context_tokens=None)
    useless = [says("z" * 20_000, usage=usage) for _ in range(20)]
    player = Player([says("x" * 6_000), *useless], window=4_500)
    async with host_with(tmp_path, player, config=_SMALL) as host:
        session_id = await new_session(host, tmp_path)
        await _turn(host, session_id, "first wish")
        turn = await _turn(host, session_id, "second wish " + "w" * 9_000)
        assert turn.state == "completed"
        summaries = [r for r in await log_of(host, session_id) if r.type == "summary"]
        assert 1 <= len(summaries) <= 3
        assert len(player.requests) <= 6


async def test_a_turn_of_many_steps_keeps_its_prompt_and_its_last_step(tmp_path: Path) -> None:
    """Where no summary can be had, the oldest steps go; neither the prompt nor the last result does."""
    broken = [_fails(started=False)] * 60
    steps: list[Any] = []
    for n in range(12):
        steps.append(asks_for(("look", {"size": 3_000 + 5 * n})))
    answers: list[Any] = []

    class Choosy(Player):
        async def stream(self, request: ModelRequest) -> Any:
            self.requests.append(request)
            summarising = not request.tools
            source = broken if summarising else answers
            answer = source.pop(0) if source else says("done.")
            async for event in answer(request):
                yield event

    answers += steps
    player = Choosy([], window=4_500)
    async with host_with(tmp_path, player, config=_SMALL) as host:
        session_id = await new_session(host, tmp_path)
        turn = await _turn(host, session_id, "the prompt")
        assert (turn.state, turn.final_text) == ("completed", "done.")
    asked = [r for r in player.requests if r.tools]
    assert len(asked) == 13
    for n, request in enumerate(asked):
        assert _texts(request)[0] == "the prompt"
        outputs = [
            o.text for m in request.messages if isinstance(m, ToolMessage) for o in m.outputs
        ]
        if n:
            assert outputs[-1] == "seen " * ((3_000 + 5 * (n - 1)) // 5)
        assert len(outputs) < 7


async def test_coordination_12_a_deleted_session_leaves_nothing_in_memory(tmp_path: Path) -> None:
    player = Player([says("first")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await _turn(host, session_id, "one")
        await host.sessions.delete(session_id, by=CLIENT)
        assert host.cache.read(session_id) is None
        with pytest.raises(CallboardError):
            await host.cache.state(session_id)
    async with host_in(tmp_path) as host:
        assert (await host.reading.sessions())[0] == []
