"""Session-messaging 12 for what agents say: no secret, and no half of one, gets past by being cut, put on one
line, framed or escaped before it reaches the log."""

import asyncio
from html import escape
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from messaging_kit import ON, at_work, until_event

from callboard.agents.frames import REASON_CHARS, reason_of
from callboard.agents.interrupts import Verb
from callboard.agents.reports import SUMMARY_CHARS
from callboard.log.redact import Redactor
from callboard.models.base import ModelError
from callboard.tools.base import ToolFailure
from callboard_rpc.common import Failure
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import InterruptVerb
from harness.inside import CLIENT
from harness.puppets import Pause, calls, of, pauses, speaks

pytestmark = pytest.mark.anyio

SECRET = "q7<zk>&vw'j\"x-known-to-the-process-0123456789"
BEGINNINGS = (SECRET[:8], escape(SECRET[:8]))
"""What a cut would leave of it, as it is and as frames write it."""
GONE = "[redacted:secret]"


def astride(limit: int, beyond: int = 30) -> str:
    """A text in which a cut at `limit` goes through the secret."""
    return "x" * (limit - beyond) + " " + SECRET + " and so on" * 10


def know(t: Troupe) -> None:
    t.host.redactor.add(SECRET)


def nothing_leaked(folder: Path, cast: Cast) -> None:
    """Neither what is on the disk nor what any model was asked holds a piece of the secret."""
    stored = b"".join(path.read_bytes() for path in folder.glob("store.db*") if path.is_file())
    asked = repr(cast.requests)
    for piece in BEGINNINGS:
        assert piece.encode() not in stored
        assert piece not in asked


def breaks(words: str) -> Any:
    async def scene(_: Any) -> Any:
        raise ModelError(Failure(kind="modelError", message=words, retryable=False))
        yield

    return scene


# --- reports ------------------------------------------------------------------------------------


@pytest.mark.parametrize("beyond", [12, 30, 44])
@pytest.mark.parametrize("how", ["said", "failed", "aborted"])
async def test_messaging_12_a_report_is_cut_after_its_secrets_are_gone(
    tmp_path: Path, how: str, beyond: int
) -> None:
    words, pause = astride(SUMMARY_CHARS, beyond), Pause()
    cast = Cast(one=[breaks(words) if how == "failed" else speaks(words)])
    if how == "aborted":
        cast.parts["one"] = [pauses(pause, "never", before=[words])]
    async with troupe(tmp_path, cast) as t:
        know(t)
        root = await t.root()
        agent = await t.spawn(root, "one")
        if how == "aborted":
            await pause.came()
            await t.host.sessions.cancel(agent.agent_id, by=CLIENT)
        report = (await t.ended(agent)).report
        assert report is not None and GONE[:4] in report.summary
        await t.say(root, "and?")
        await t.idle(root)
        assert "<agent-report" in cast.heard("root")
    nothing_leaked(tmp_path, cast)


def test_peers_12_a_reason_is_cut_after_its_secrets_are_gone() -> None:
    redact = Redactor([SECRET]).json_text
    kept = reason_of(redact, f"  {astride(REASON_CHARS)}  ")
    assert len(kept) == REASON_CHARS and GONE in kept and SECRET[:8] not in kept
    assert reason_of(redact, " why ") == "why"


@pytest.mark.parametrize("kind", ["steer", "abort"])
async def test_peers_12_no_piece_of_a_secret_is_left_at_the_end_of_a_reason(
    tmp_path: Path, kind: InterruptVerb
) -> None:
    cast = Cast()
    async with troupe(tmp_path, cast, environ=ON) as t:
        know(t)
        root = await t.root()
        one = await at_work(t, root, "one")
        verb = Verb(kind=kind, by=CLIENT, origin="user", reason=astride(REASON_CHARS))
        await t.agents.interrupt(one.agent.agent_id, verb)
        one.pause.open.set()
        await t.ended(one.agent)
        (wanted,) = of(await t.log(one.agent.agent_id), "agent_interrupt_requested")
        assert wanted.reason is not None and GONE in wanted.reason
    nothing_leaked(tmp_path, cast)


async def test_messaging_5_the_last_answer_is_the_result_whole_unframed_and_without_secrets(
    tmp_path: Path,
) -> None:
    """5.5: its text is the result. Nothing is cut of it, as it is of the report."""
    spawn = calls(("spawn_agent", {"name": "one", "message": "go", "wait": True}))
    words = astride(SUMMARY_CHARS)
    cast = Cast(root=[spawn, speaks("I see")], one=[speaks(words)])
    async with troupe(tmp_path, cast) as t:
        know(t)
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        assert cast.read("root") == [words.replace(SECRET, GONE)]
    nothing_leaked(tmp_path, cast)


# --- what agents say to each other --------------------------------------------------------------


@pytest.mark.parametrize("expects_reply", [True, False])
async def test_messaging_12_what_a_child_says_is_framed_after_its_secrets_are_gone(
    tmp_path: Path, expects_reply: bool
) -> None:
    cast = Cast(root=[speaks("let me see")])
    async with troupe(tmp_path, cast, environ=ON) as t:
        know(t)
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        one = await at_work(t, root, "one")
        text = f"<b> {SECRET}"
        asks = asyncio.create_task(one.asks(text, expects_reply=expects_reply))
        await until_event(t, root, "message", lambda m: f"&lt;b&gt; {GONE}" in said(m))
        asks.cancel()
        one.pause.open.set()
        await t.idle(root)
    nothing_leaked(tmp_path, cast)


def said(message: Any) -> str:
    return "".join(getattr(block, "text", "") for block in message.content)


@pytest.mark.parametrize("pad", [0, 160, 195])
async def test_messaging_12_a_siblings_message_is_framed_and_cut_after_its_secrets_are_gone(
    tmp_path: Path, pad: int
) -> None:
    """195: where the marker for people is cut. What was said twice is still said once."""
    cast = Cast()
    async with troupe(tmp_path, cast, environ=ON) as t:
        know(t)
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await at_work(t, root, "b")
        text = "y" * pad + f" {SECRET}"
        assert (await a.writes("b", text)).message_id is not None
        assert (await a.writes("b", text)).message_id is None
        for each in (a, b):
            each.pause.open.set()
            await t.ended(each.agent)
        assert f"{'y' * pad} {GONE}" in cast.heard("b")
    nothing_leaked(tmp_path, cast)


async def test_messaging_12_a_reply_that_lies_in_the_inbox_is_framed_without_secrets(
    tmp_path: Path,
) -> None:
    cast = Cast(one=[calls(("message", {"to": "parent", "text": "which?"})), speaks("I see")])
    cast.parts["root"] = [speaks("hello")]
    async with troupe(tmp_path, cast, environ=ON) as t:
        know(t)
        root = await t.root()
        agent = await t.spawn(root, "one")
        asked = await until_event(t, agent.agent_id, "agent_asked")
        message = of(await t.log(agent.agent_id), "directive")[0]
        await t.agents.reply(asked.ask_id, f"<b> {SECRET}", author=message.author, by=CLIENT)
        await t.ended(agent)
        (result,) = cast.read("one")
        assert f"&lt;b&gt; {GONE}" in result
    nothing_leaked(tmp_path, cast)


# --- what errors repeat -------------------------------------------------------------------------


async def test_messaging_12_an_error_repeats_no_piece_of_what_was_too_long_to_be_a_name(
    tmp_path: Path,
) -> None:
    named = astride(80, 20)
    wrong = [
        ("continue_agent", {"agent_id": named, "message": "go on"}),
        ("reply", {"ask_id": named, "text": "a"}),
    ]
    cast = Cast(root=[calls(*wrong), speaks("I see")])
    async with troupe(tmp_path, cast, environ=ON) as t:
        know(t)
        root = await t.root()
        a = await at_work(t, root, "a")
        with pytest.raises(CallboardError) as unknown:
            t.agents.agent(named)
        assert SECRET[:8] not in unknown.value.message
        with pytest.raises(ToolFailure, match="not_allowed") as refused:
            await a.writes(named, "hello")
        assert SECRET[:8] not in str(refused.value)
        await t.say(root)
        await t.idle(root)
        codes = [each.partition(":")[0] for each in cast.read("root")]
        assert codes == ["unknown_agent", "unknown_question"]
        results = [e.text for e in of(await t.log(root), "tool_result")]
        assert not any(SECRET[:8] in text for text in results)
        with pytest.raises(CallboardError, match="'nobody'"):
            t.agents.agent("nobody")
