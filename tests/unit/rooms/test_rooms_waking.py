"""An agent's message wakes the first other member that it addresses, while the burst lasts (session-messaging 9
and 18)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rooms_kit import Actors, configure, stage, users

from callboard.config.settings import Settings
from callboard.host import builtin_features, projections_of
from callboard.log import checking
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.rooms.mentions import mentioned
from callboard.rooms.state import burst_after
from callboard.sessions.telling import RunListeners
from callboard_rpc.common import UNSET, MessageId, TextContent
from callboard_rpc.events import Author, Delivered, Directive, Message, Summary
from harness.exports import lines_of, recounted, sealed
from harness.inside import CLIENT, until
from harness.puppets import Pause, calls, of, pauses, speaks

pytestmark = pytest.mark.anyio


def arguing(*names: str) -> Actors:
    """Each always addresses the next one."""
    actors = Actors()
    for name, other in zip(names, (*names[1:], names[0]), strict=True):
        actors.for_ever[name] = f"I see it differently, @{other}."
    return actors


@pytest.mark.parametrize("budget", [0, 1, 2, 3, 6])
async def test_rooms_two_agents_that_always_mention_each_other_stop_exactly_at_the_budget(
    tmp_path: Path, budget: int
) -> None:
    async with stage(tmp_path, arguing("alpha", "beta")) as s:
        room = await s.room("alpha", "beta", budget=budget)
        turns = await s.told(room, "discuss")
        messages = max(budget, 1)
        assert turns == (["alpha", "beta"] * messages)[:messages]
        wakes, (stopped,) = await s.mentions(room), await s.suppressed(room)
        assert [(w.burst, w.budget) for w in wakes] == [(n, budget) for n in range(1, messages)]
        assert (stopped.burst, stopped.budget) == (messages, budget)
        assert (stopped.by, stopped.name) == (turns[-1], "alpha" if turns[-1] == "beta" else "beta")
        burst = (await s.rooms.room(room)).burst
        assert (burst.used, burst.budget, burst.exhausted) == (messages, budget, True)
        # only a person begins anew
        assert len(await s.told(room, "and now?")) == messages
        assert len(await s.suppressed(room)) == 2


async def test_rooms_the_budget_is_the_session_s_else_the_configured_one(tmp_path: Path) -> None:
    configure(tmp_path, "[rooms]\nburst_budget = 3\n")
    async with stage(tmp_path, arguing("alpha", "beta")) as s:
        room = await s.room("alpha", "beta")
        assert len(await s.told(room, "discuss")) == 3
        same: dict[str, Any] = dict.fromkeys(
            ("title", "pinned", "metadata", "mode", "model"), UNSET
        )
        await s.host.sessions.update(room, by=CLIENT, burst_budget=5, **same)
        assert len(await s.told(room, "discuss")) == 5
        await s.host.sessions.update(room, by=CLIENT, burst_budget=None, **same)
        assert len(await s.told(room, "discuss")) == 3


@pytest.mark.parametrize(
    ("text", "woken"),
    [
        ("over to you, @beta.", ["beta"]),
        ("@alpha (that is me) and (@gamma), @beta", ["gamma"]),
        ("@beta @gamma", ["beta"]),
        ("beta and gamma are fine", []),
        ("```\n@beta\n```", []),
        ("> @beta said it", []),
        ("me@beta.org", []),
        ("@stranger?", []),
        ("@ALPHA", []),
    ],
)
async def test_rooms_the_first_valid_mention_wakes_and_no_other_and_nothing_falls_back(
    tmp_path: Path, text: str, woken: list[str]
) -> None:
    async with stage(tmp_path, Actors(alpha=[speaks(text)])) as s:
        room = await s.room("alpha", "beta", "gamma", host="gamma")
        assert await s.told(room, "@alpha go") == ["alpha", *woken]
        if woken:
            (event,) = await s.mentions(room)
            said = next(r for r in await s.log(room) if r.seq == event.message_seq)
            assert (said.type, said.value.author.name, event.by) == ("message", "alpha", "alpha")
            assert (
                mentioned(said.value.content[0].text, ("alpha", "beta", "gamma"), by="alpha")
                == woken[0]
            )


async def test_rooms_only_the_last_message_of_a_turn_addresses_anybody(tmp_path: Path) -> None:
    look = ("list_files", {"path": "."})
    actors = Actors(alpha=[calls(look, text="@beta, wait"), speaks("done, @gamma")])
    async with stage(tmp_path, actors) as s:
        room = await s.room("alpha", "beta", "gamma")
        assert await s.told(room, "go") == ["alpha", "gamma"]


async def test_rooms_a_silent_turn_wakes_nobody_though_its_last_result_names_somebody(
    tmp_path: Path,
) -> None:
    (tmp_path / "note.txt").write_text("@beta do as I say\n", "utf-8")
    read = ("read_file", {"path": "note.txt"})
    async with stage(tmp_path, Actors(alpha=[calls(read), speaks("")])) as s:
        room = await s.room("alpha", "beta")
        assert await s.told(room, "go") == ["alpha"]
        (end,) = of(await s.log(room), "turn_finished")
        assert "@beta" in end.final_text
        assert s.burst(room) == 0


async def test_rooms_a_mention_at_the_end_of_a_very_long_message_counts(tmp_path: Path) -> None:
    text = "so it goes on\n" * 10_000 + "```\n" * 2 + "over to @beta"
    async with stage(tmp_path, Actors(alpha=[speaks(text)])) as s:
        room = await s.room("alpha", "beta")
        assert await s.told(room, "go") == ["alpha", "beta"]


async def test_rooms_the_reply_that_mentions_while_the_run_still_holds_the_session_is_not_lost(
    tmp_path: Path,
) -> None:
    """In chaz the reply is written before the busy flag is cleared, and the wake is dropped. Here nobody ever
    sees the one without the other: what wakes is in the transaction that ends the turn."""
    async with stage(tmp_path, Actors(alpha=[speaks("@beta?")])) as s:
        room = await s.room("alpha", "beta")
        commits: list[list[str]] = []
        s.host.log.listen(lambda records: commits.append([r.type for r in records]))
        assert await s.told(room, "go") == ["alpha", "beta"]
        records = await s.log(room)
        event = next(r for r in records if r.type == "member_mentioned")
        end = next(r for r in records if r.type == "turn_finished")
        assert event.turn_id == end.turn_id and event.seq < end.seq
        assert end.value.answered_through == event.seq - 1
        started = [r for r in records if r.type == "turn_started"][1]
        assert (started.value.trigger.kind, started.value.trigger.seqs) == ("mention", (event.seq,))


async def test_rooms_a_mention_and_prompts_for_its_member_are_one_turn(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, Actors(alpha=[pauses(pause, "what do you say, @beta?")])) as s:
        room = await s.room("alpha", "beta")
        await s.say(room, "go")
        await pause.came()
        first = await s.say(room, "@beta you too")
        pause.open.set()
        await s.rest(room)
        assert await s.turns(room) == ["alpha", "beta"]
        assert (await s.answered(room))[first.record.seq] == "beta"


async def test_rooms_a_cancelled_agent_wakes_nobody(tmp_path: Path) -> None:
    pause = Pause()
    actors = Actors(alpha=[pauses(pause, "never", before=["@beta, "])])
    async with stage(tmp_path, actors) as s:
        room = await s.room("alpha", "beta")
        await s.say(room, "go")
        await pause.came()
        await s.host.sessions.cancel(room, by=CLIENT)
        await s.rest(room)
        assert await s.turns(room) == ["alpha"]
        assert s.burst(room) == 0


async def test_rooms_a_mention_that_nobody_has_answered_goes_on_after_a_restart(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, Actors(alpha=[speaks("@beta?")])) as s:
        room = await s.room("alpha", "beta")
        wake = s.host.dispatcher.wake_here
        first = True

        async def once(session_id: str) -> str | None:
            nonlocal first
            if first:
                first = False
                return await wake(session_id)
            return None

        s.host.dispatcher.wake_here = once  # type: ignore[method-assign]
        await s.say(room, "go")

        async def finished() -> list[Any]:
            return of(await s.log(room), "turn_finished")

        await until(s.host, finished)
    async with stage(tmp_path) as s:
        await s.rest(room)
        assert await s.turns(room) == ["alpha", "beta"]


# --- the burst ----------------------------------------------------------------------------------------


def said(kind: Any, *, final: bool = False, delivered: bool = False) -> Message:
    return Message(
        message_id=MessageId("msg_1"),
        author=Author(kind=kind, name="x"),
        content=(TextContent(text="t"),),
        final=final,
        delivered=Delivered(delivery_id="d", generation=1, digest="d", kind="report")
        if delivered
        else None,
    )


_DIRECTIVE = Directive(
    message_id=MessageId("msg_2"), author=Author(kind="system", name="s"), text="t"
)
_EVENTS = st.sampled_from(
    [
        ("person", said("person"), False),
        ("agent", said("agent", final=True), True),
        ("", said("agent"), True),
        ("", said("agent", delivered=True), True),
        ("", said("peer"), False),
        ("", said("system"), False),
        ("directive", _DIRECTIVE, False),
        ("", _DIRECTIVE, True),
        ("", Summary(text="s", covers_through=1, author=Author(kind="system", name="s"), reason="command"), True),
    ]
)  # fmt: skip


@given(st.lists(_EVENTS, max_size=40))
def test_rooms_a_burst_is_what_agents_have_said_since_a_person_or_a_directive(
    events: Sequence[tuple[str, Any, bool]],
) -> None:
    burst = 0
    for _, event, in_turn in events:
        burst = burst_after(burst, event, in_turn=in_turn)
    backwards = 0
    for kind, _, _ in reversed(events):
        if kind in ("person", "directive"):
            break
        backwards += kind == "agent"
    assert burst == backwards


async def test_rooms_what_a_rewind_takes_away_is_not_counted_and_nothing_of_it_is_in_the_table_alone(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, arguing("alpha", "beta")) as s:
        room = await s.room("alpha", "beta", budget=3)
        await s.told(room, "discuss")
        await s.told(room, "discuss")
        turns, _ = await s.host.reading.turns(room)
        await s.host.rewinding.rewind(room, turns[4].turn_id, by=CLIENT)
        assert s.burst(room) == 1
        await s.host.rewinding.rewind(room, turns[3].turn_id, by=CLIENT)
        assert s.burst(room) == 3  # the person's message that was taken in is gone, too
        table = await s.host.log.query("SELECT * FROM bursts")
        await s.host.log.rebuild()
        assert await s.host.log.query("SELECT * FROM bursts") == table == [(room, 3)]
        await s.host.sessions.delete(room, by=CLIENT)
        assert await s.host.log.query("SELECT * FROM bursts") == []


async def test_rooms_a_rewind_does_not_count_what_was_said_before_a_room_was_made_anew(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, arguing("alpha", "beta")) as s:
        room = await s.room("alpha", "beta", budget=2)
        await s.told(room, "discuss")
        for name in ("alpha", "beta"):
            await s.rooms.remove(room, name, by=CLIENT)
        await s.rooms.add(room, "gamma", host=False, by=CLIENT)
        assert s.burst(room) == 0
        await s.told(room, "@gamma hello")
        turns, _ = await s.host.reading.turns(room)
        await s.host.rewinding.rewind(room, turns[-1].turn_id, by=CLIENT)
        assert s.burst(room) == 0


async def test_rooms_a_store_with_rooms_is_what_its_log_says(tmp_path: Path) -> None:
    async with stage(tmp_path, arguing("alpha", "beta")) as s:
        room = await s.room("alpha", "beta", budget=2)
        await s.told(room, "discuss")
        other = await s.alone()
        await s.told(other, "hello")
        await s.rooms.add(other, "beta", host=True, by=CLIENT)
        await s.told(other, "hello")
        assert s.burst(other) == 1
        for name in ("beta", "default"):
            await s.rooms.remove(other, name, by=CLIENT)
        assert await s.told(other, "hello") == ["default"]
        assert [row[0] for row in await s.host.log.query("SELECT session_id FROM bursts")] == [room]
    projections = projections_of(RunListeners(), builtin_features(Settings()))
    report = checking.check(
        tmp_path / "store.db", now=utc_now, ids=IdSource(), projections=projections
    )
    assert report.findings == ()


# --- copies ---------------------------------------------------------------------------------------------


async def test_rooms_a_fork_keeps_the_room_and_wakes_nobody(tmp_path: Path) -> None:
    async with stage(tmp_path, arguing("alpha", "beta")) as s:
        room = await s.room("alpha", "beta", budget=3)
        await s.rooms.add(room, "gamma", host=True, by=CLIENT)
        await s.told(room, "@alpha discuss")
        fork = await s.host.forking.fork(room, at_turn_id=None, title=None, by=CLIENT)
        await s.rest(fork.session_id)
        copy = fork.session_id
        assert await s.turns(copy) == [] and await s.mentions(copy) == []
        shown, original = await s.rooms.room(copy), await s.rooms.room(room)
        assert shown == original
        assert (shown.host, [m.name for m in shown.members]) == (
            "gamma",
            ["alpha", "beta", "gamma"],
        )
        assert (shown.burst.used, shown.burst.budget) == (3, 3)
        assert await s.told(copy, "and now?") == ["gamma"]
        assert '<member name="beta">' in "".join(users(s.actors.of("gamma")[-1]))


async def test_rooms_an_imported_room_wakes_nobody_and_goes_on_as_one(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with stage(tmp_path / "a", arguing("alpha", "beta")) as s:
        room = await s.room("alpha", "beta", budget=3)
        await s.told(room, "discuss")
        lines = lines_of((await s.host.writing_out.piece(room, cursor=None, limit=1000)).text)
    # cut behind the first turn, as if it had been exported with a mention that waits
    ends = [n for n, line in enumerate(lines) if line.get("type") == "turn_finished"]
    cut = sealed(recounted([*lines[: ends[0] + 1], lines[-1]]))
    async with stage(tmp_path / "b", Actors()) as s:
        await s.host.importing.run(cut)
        await s.rest(room)
        assert await s.turns(room) == ["alpha"]
        assert s.burst(room) == 1
        assert await s.told(room, "@alpha and you?") == ["beta", "alpha"]
