"""What a member reads (session-messaging 9, DESIGN 6): what the others have said by their names, and nothing of how
they came to it; alone in a room it reads what it would read without one."""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from rooms_kit import Actors, Stage, assistants, configure, results_in, stage, users

from callboard.models.base import ModelRequest, ToolMessage
from harness.inside import CLIENT
from harness.puppets import Pause, Scene, calls, of, pauses, speaks

pytestmark = pytest.mark.anyio

READ = ("read_file", {"path": "note.txt"})
_CALL = re.compile(r"call_\w+")
NOTE = "Others take part in this conversation: "


def shown(request: ModelRequest) -> str:
    """All that a provider is sent, but for ids that the log gives."""
    text = "\n".join([request.system, *(repr(m) for m in request.messages), repr(request.tools)])
    ids = {each: f"call {n}" for n, each in enumerate(dict.fromkeys(_CALL.findall(text)))}
    return _CALL.sub(lambda found: ids[found[0]], text)


def traffic(request: ModelRequest) -> list[ToolMessage]:
    return [m for m in request.messages if isinstance(m, ToolMessage)]


def alone() -> list[Scene]:
    return [
        calls(READ),
        calls(READ, text="Once more."),
        speaks("it says hello"),
        speaks("as I said"),
    ]


async def test_rooms_one_agent_s_prompt_is_the_same_bytes_with_a_room_and_without(
    tmp_path: Path,
) -> None:
    (tmp_path / "note.txt").write_text("hello\n", "utf-8")
    asked: list[list[str]] = []
    async with stage(tmp_path) as s:
        for session in (
            await s.room(profile="alpha"),
            await s.room("alpha"),
            await s.room("alpha", host="alpha", budget=3),
        ):
            s.actors.requests.clear()
            s.actors.parts["alpha"] = alone()
            await s.told(session, "what does it say?")
            await s.told(session, "really?")
            asked.append([shown(request) for request in s.actors.of("alpha")])
    assert len(asked[0]) == 4
    assert asked[0] == asked[1] == asked[2]
    assert NOTE not in asked[1][0]


async def test_rooms_the_note_names_the_others_in_their_order_and_never_who_reads_it(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as s:
        room = await s.room("alpha", "gamma", "beta")
        for name in ("alpha", "beta", "gamma"):
            await s.told(room, "hello", to=name)
        notes = {
            name: s.actors.of(name)[0].system.partition(NOTE)[2].partition(".")[0]
            for name in ("alpha", "beta", "gamma")
        }
        assert notes == {"alpha": "gamma, beta", "beta": "alpha, gamma", "gamma": "alpha, beta"}
        assert s.actors.of("beta")[0].system.count(NOTE) == 1


async def test_rooms_nobody_sees_what_another_agent_did_nor_its_own_earlier_turns_calls(
    tmp_path: Path,
) -> None:
    (tmp_path / "note.txt").write_text("the aardvark of the note\n", "utf-8")
    configure(tmp_path, '[context]\ntools = "replay"\n')
    actors = Actors(
        alpha=[
            calls(READ, text="I look."),
            speaks("It is a <note> & nothing, @beta"),
            speaks("yes"),
        ],
        beta=[calls(READ), speaks("I see, @alpha")],
    )
    async with stage(tmp_path, actors) as s:
        room = await s.room("alpha", "beta")
        assert await s.told(room, "what is it?") == ["alpha", "beta", "alpha"]
        first, second = s.actors.of("beta")
        assert "aardvark" not in shown(first)
        assert results_in(second) and "aardvark" in results_in(second)[0]
        assert users(first) == [
            "what is it?",
            '<member name="alpha">\nI look.\n</member>',
            '<member name="alpha">\nIt is a &lt;note&gt; &amp; nothing, @beta\n</member>',
        ]
        assert assistants(first) == []
        last = s.actors.of("alpha")[-1]
        assert "aardvark" not in shown(last) and traffic(last) == []
        assert assistants(last) == ["I look.", "It is a <note> & nothing, @beta"]
        assert users(last)[-1] == '<member name="beta">\nI see, @alpha\n</member>'


async def test_rooms_what_others_did_stays_theirs_when_they_have_left(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("the aardvark of the note\n", "utf-8")
    actors = Actors(beta=[calls(READ), calls(READ), speaks("I know it")])
    async with stage(tmp_path, actors) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "@beta what is it?")
        await s.rooms.remove(room, "beta", by=CLIENT)
        await s.told(room, "and now?")
        one = s.actors.of("alpha")[-1]
        await s.rooms.remove(room, "alpha", by=CLIENT)
        assert await s.told(room, "and now?") == ["alpha"]
        none = s.actors.of("alpha")[-1]
        for request in (one, none):
            assert "aardvark" not in shown(request) and traffic(request) == []
            assert '<member name="beta">\nI know it\n</member>' in users(request)


async def test_rooms_who_was_alone_keeps_its_words_when_others_come(tmp_path: Path) -> None:
    actors = Actors(default=[speaks("mine"), speaks("mine again")])
    async with stage(tmp_path, actors) as s:
        session = await s.alone()
        await s.told(session, "one")
        await s.rooms.add(session, "beta", host=False, by=CLIENT)
        assert await s.told(session, "two") == ["default"]
        assert assistants(s.actors.of("default")[-1]) == ["mine"]
        await s.told(session, "@beta three")
        assert users(s.actors.of("beta")[-1])[1] == '<member name="default">\nmine\n</member>'


async def test_rooms_a_request_never_ends_with_the_words_of_its_own_agent(tmp_path: Path) -> None:
    """What woke it comes last, whoever has spoken in between."""
    actors = Actors(alpha=[speaks("@beta?"), speaks("@beta!")], beta=[speaks("@alpha?")])
    async with stage(tmp_path, actors) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "go")
        for _, request in s.actors.requests:
            assert type(request.messages[-1]).__name__ == "UserMessage"
            kinds = [type(m).__name__ for m in request.messages]
            assert all(a != b for a, b in pairwise(kinds))


async def test_rooms_a_summary_says_who_has_said_what_and_is_for_all(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("the aardvark of the note\n", "utf-8")
    actors = Actors(alpha=[calls(READ), speaks("A said this")], beta=[speaks("B said that")])
    async with stage(tmp_path, actors) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "one")
        await s.told(room, "@beta two")
        s.actors.parts["default"] = [speaks("the summary")]  # it has no prompt of an agent's
        assert await s.host.compacting.compact(room, by=CLIENT, instructions=None) is not None
        ask = s.actors.of("default")[-1]
        assert assistants(ask) == [] and "aardvark" not in shown(ask)
        assert '<member name="alpha">\nA said this\n</member>' in users(ask)
        assert '<member name="beta">\nB said that\n</member>' in users(ask)
        await s.told(room, "@beta three")
        last = s.actors.of("beta")[-1]
        assert "the summary" in users(last)[0] and assistants(last) == []


async def test_rooms_a_prompt_during_a_compaction_stays_in_context(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "one")
        await s.told(room, "@beta two")
        s.actors.parts["default"] = [pauses(pause, "the summary")]
        async with _meanwhile(s, room, pause):
            await s.say(room, "@beta three")
        await s.rest(room)
        assert users(s.actors.of("beta")[-1])[-1] == "@beta three"
        assert (await s.turns(room))[-1] == "beta"


@contextlib.asynccontextmanager
async def _meanwhile(s: Stage, room: str, pause: Pause) -> AsyncGenerator[None]:
    """While a summary is made."""
    work = asyncio.ensure_future(s.host.compacting.compact(room, by=CLIENT, instructions=None))
    await pause.came()
    yield
    pause.open.set()
    await work


async def test_rooms_members_are_who_the_log_says_wrote(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "@beta one")
        (said,) = [r for r in await s.log(room) if r.type == "message" and r.value.final]
        assert said.value.author.name == "beta"
        actor = orjson.loads(said.actor)
        assert (actor["kind"], actor["name"]) == ("agent", "beta")
        (started,) = of(await s.log(room), "turn_started")
        assert started.profile == "beta"
