"""Whose turn it is (session-messaging 9 and 18, DESIGN 6): explicit target, first mention of a member, host,
first member."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from rooms_kit import Actors, configure, profile, stage, users

from callboard.sessions.projection import SQL
from callboard_rpc.common import TextContent
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import MemberRemoved
from harness.inside import CLIENT, pending, until
from harness.puppets import Pause, calls, fails, of, pauses, speaks

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("to", "text", "host", "who"),
    [
        ("beta", "hello", None, "beta"),
        ("beta", "@gamma hello", None, "beta"),
        ("beta", "hello", "gamma", "beta"),
        ("BETA", "hello", "gamma", "beta"),
        (None, "@beta hello", None, "beta"),
        (None, "@beta hello", "gamma", "beta"),
        (None, "@gamma and @beta", None, "gamma"),
        (None, "over to @Beta.", "gamma", "beta"),
        (None, "@stranger, then @beta", "gamma", "beta"),
        (None, "hello", "gamma", "gamma"),
        (None, "@stranger", "gamma", "gamma"),
        (None, "`@beta`", "gamma", "gamma"),
        (None, "> @beta\nwhat was that?", "gamma", "gamma"),
        (None, "hello", None, "alpha"),
        (None, "@stranger", None, "alpha"),
        (None, "", None, "alpha"),
    ],
)
async def test_rooms_override_mention_host_first(
    tmp_path: Path, to: str | None, text: str, host: str | None, who: str
) -> None:
    async with stage(tmp_path) as s:
        room = await s.room("alpha", "beta", "gamma", host=host)
        assert await s.told(room, text or " .", to=to) == [who]


async def test_rooms_a_session_without_members_is_its_profile_s(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session = await s.room(profile="beta")
        assert await s.told(session, "@alpha hello") == ["beta"]
        assert await s.told(session, "hello", to="beta") == ["beta"]


async def test_rooms_to_nobody_who_takes_part_is_refused_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as s:
        for session, names in (
            (await s.room("alpha", "beta"), "alpha, beta"),
            (await s.alone(), "default"),
        ):
            before = await s.log(session)
            with pytest.raises(
                CallboardError, match=rf"'gamma' takes no part .*: {names} "
            ) as error:
                await s.say(session, "hello", to="gamma")
            assert error.value.kind == "notAMember"
            assert len(await s.log(session)) == len(before)


async def test_rooms_a_mention_of_a_stranger_falls_through_with_a_warning(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        room = await s.room("alpha", "beta", host="beta")
        posted = await s.say(room, "what does @nobody. say?")
        assert posted.warning == (
            "@nobody takes no part in this session, so beta answers; there are: alpha, beta"
        )
        await s.rest(room)
        assert (await s.say(room, "hello")).warning is None
        assert (await s.say(room, "@nobody or @alpha")).warning is None
        await s.rest(room)


async def test_rooms_consecutive_prompts_for_one_agent_are_one_turn_and_the_others_wait(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, Actors(alpha=[pauses(pause, "1")])) as s:
        room = await s.room("alpha", "beta")
        await s.say(room, "one")
        await pause.came()
        for text in ("@beta a", "to you, @beta", "c", "d", "@beta e"):
            await s.say(room, text)
        pause.open.set()
        await s.rest(room)
        assert await s.turns(room) == ["alpha", "beta", "alpha", "beta"]
        assert len(await s.answered(room)) == 6
        first, _ = s.actors.of("beta")
        assert "@beta a" in users(first)[-2] and users(first)[-1] == "to you, @beta"
        assert users(s.actors.of("alpha")[1])[-2:] == ["c", "d"]


async def test_rooms_twenty_posts_during_one_slow_run_are_all_answered_once(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, Actors(alpha=[pauses(pause, "1")])) as s:
        room = await s.room("alpha", "beta")
        await s.say(room, "one")
        await pause.came()
        posted = [await s.say(room, f"@beta {n}") for n in range(10)]
        posted += [await s.say(room, f"{n}") for n in range(10)]
        pause.open.set()
        await s.rest(room)
        assert await s.turns(room) == ["alpha", "beta", "alpha"]
        answered = await s.answered(room)
        assert [answered[p.record.seq] for p in posted] == ["beta"] * 10 + ["alpha"] * 10


async def test_rooms_a_waiting_prompt_is_for_whom_it_names_by_now(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, Actors(alpha=[pauses(pause, "1")])) as s:
        room = await s.room("alpha", "beta", "gamma")
        await s.say(room, "one")
        await pause.came()
        posted = await s.say(room, "@beta two")
        for text in ("@alpha no", "@gamma two"):
            await s.host.queue.update(room, posted.record.seq, (TextContent(text=text),), by=CLIENT)
        pause.open.set()
        await s.rest(room)
        assert await s.turns(room) == ["alpha", "gamma"]


async def test_rooms_a_mention_in_a_large_prompt_counts(tmp_path: Path) -> None:
    filler = "nothing to see here\n" * 4_000
    async with stage(tmp_path) as s:
        room = await s.room("alpha", "beta")
        assert await s.told(room, f"{filler}@beta{filler}") == ["alpha"]
        assert await s.told(room, f"{filler}@beta {filler}") == ["beta"]
        assert await s.told(room, f"{filler}```\n{filler}@beta {filler}") == ["alpha"]


async def test_rooms_who_has_left_is_not_addressed(tmp_path: Path) -> None:
    pause = Pause()
    actors = Actors(alpha=[pauses(pause, "so, @beta?")])
    async with stage(tmp_path, actors) as s:
        room = await s.room("alpha", "beta", "gamma", host="gamma")
        await s.say(room, "@alpha one")
        await pause.came()
        named = await s.say(room, "two", to="beta")
        mentioned = await s.say(room, "@beta three")
        await s.rooms.remove(room, "beta", by=CLIENT)
        pause.open.set()
        await s.rest(room)
        answered = await s.answered(room)
        assert answered[named.record.seq] == answered[mentioned.record.seq] == "gamma"
        assert await s.mentions(room) == []


async def test_rooms_a_mention_whose_member_leaves_before_its_turn_is_the_host_s(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, Actors(alpha=[speaks("@beta?")])) as s:
        room = await s.room("alpha", "beta", "gamma", host="gamma")
        transact = s.host.log.transact

        def and_leaves(function: Any) -> Any:
            def both(tx: Any) -> Any:
                done = function(tx)
                if any(r.type == "member_mentioned" for r in tx.appended):
                    tx.append(room, MemberRemoved(name="beta"), actor=CLIENT)
                return done

            return transact(both)

        s.host.log.transact = and_leaves  # type: ignore[method-assign]
        assert await s.told(room, "@alpha go") == ["alpha", "gamma"]


async def test_rooms_a_trigger_followed_by_anything_that_is_none_is_answered(
    tmp_path: Path,
) -> None:
    """Chaz looks at the latest entry only: what came behind a message hid it."""
    pause = Pause()
    async with stage(tmp_path, Actors(alpha=[pauses(pause, "1"), speaks("2")])) as s:
        room = await s.room("alpha", "beta")
        await s.say(room, "one")
        await pause.came()
        posted = await s.say(room, "@beta two")
        await s.rooms.add(room, "gamma", host=True, by=CLIENT)
        pause.open.set()
        await s.rest(room)
        assert (await s.answered(room))[posted.record.seq] == "beta"


async def test_rooms_a_steer_is_for_the_agent_that_runs_and_one_for_another_waits(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, Actors(alpha=[pauses(pause, "1"), speaks("2")])) as s:
        room = await s.room("alpha", "beta")
        await s.say(room, "one")
        await pause.came()
        outcomes = [
            (await s.say(room, text, to=to, delivery="steer")).outcome
            for text, to in (
                ("not so", None), ("@alpha nor so", None), ("or so", "alpha"),
                ("@beta you", None), ("and you", "beta"),
            )
        ]  # fmt: skip
        assert outcomes == ["steered"] * 3 + ["queued"] * 2
        pause.open.set()
        await s.rest(room)
        assert await s.turns(room) == ["alpha", "beta"]
        assert users(s.actors.of("alpha")[-1])[-3:] == ["not so", "@alpha nor so", "or so"]


async def test_rooms_a_member_whose_profile_is_gone_fails_and_the_next_trigger_goes_on(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, Actors(alpha=[pauses(pause, "1")])) as s:
        room = await s.room("alpha", "beta")
        await s.say(room, "one")
        await pause.came()
        await s.say(room, "@beta two")
        await s.say(room, "three")
        (tmp_path / "config" / "agents" / "beta.md").unlink()
        pause.open.set()
        await s.rest(room)
        assert await s.turns(room) == ["alpha", "beta", "alpha"]
        ends = of(await s.log(room), "turn_finished")
        assert [end.outcome for end in ends] == ["completed", "failed", "completed"]
        assert ends[1].error.kind == "profileNotFound"
        assert (
            "there is no profile 'beta'; there are: alpha, default, gamma" in ends[1].error.message
        )
        shown = {m.name: m.available for m in (await s.rooms.room(room)).members}
        assert shown == {"alpha": True, "beta": False}


async def test_rooms_each_member_has_its_model_and_its_mode_ends_at_its_own(tmp_path: Path) -> None:
    profile(tmp_path, "beta", model="other/model", mode="plan")
    write = ("write_file", {"path": "made.txt", "content": "x"})
    configure(tmp_path, '[approvals.policy]\nwrite = "allow"\n')
    actors = Actors(alpha=[calls(write), speaks("a")], beta=[calls(write), speaks("b")])
    async with stage(tmp_path, actors) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "@beta write")
        assert not (tmp_path / "made.txt").exists()
        await s.told(room, "@alpha write")
        assert (tmp_path / "made.txt").exists()
        records = await s.log(room)
        started = {each.profile: each.model for each in of(records, "turn_started")}
        assert started["beta"] == "other/model"
        assert started["alpha"] != "other/model"
        assert [r.status for r in of(records, "tool_result")] == ["denied", "ok"]


async def test_rooms_a_failed_turn_wakes_nobody(tmp_path: Path) -> None:
    async with stage(tmp_path, Actors(alpha=[fails(text="@beta, look: ")])) as s:
        room = await s.room("alpha", "beta")
        assert await s.told(room, "go") == ["alpha"]
        assert await s.mentions(room) == []


async def test_rooms_a_parked_turn_stays_its_agent_s_over_a_restart(tmp_path: Path) -> None:
    configure(tmp_path, '[approvals.policy]\nwrite = "ask"\n')
    write = ("write_file", {"path": "made.txt", "content": "x"})
    async with stage(tmp_path, Actors(beta=[calls(write)])) as s:
        room = await s.room("alpha", "beta")
        await s.say(room, "@beta write")
        (approval,) = await pending(s.host)
        assert [step.name for step in approval.path] == ["beta"]
        await s.say(room, "and you?")
    async with stage(tmp_path, Actors(beta=[speaks("it is written, @alpha")])) as s:
        assert (await s.host.reading.session(room)).status == "parked"
        await s.host.approvals.answer(approval.approval_id, "allow_once", by=CLIENT, via="method")
        await s.rest(room)
        assert (tmp_path / "made.txt").exists()
        assert await s.turns(room) == ["beta", "alpha"]
        said = [m.author.name for m in of(await s.log(room), "message") if m.final]
        assert said == ["beta", "alpha"]
        assert len(await s.mentions(room)) == 1


async def test_rooms_who_was_cut_off_by_a_crash_is_who_spoke(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "@beta hello")
        turn = (await s.host.reading.last_turn(room)).turn_id  # type: ignore[union-attr]
        assert await s.host.log.query(SQL["speaker_of_turn"], turn) == [("beta",)]


async def test_rooms_the_queue_shows_what_waits_and_a_mention_is_no_prompt_to_rewrite(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, Actors(alpha=[speaks("@beta?")])) as s:
        room = await s.room("alpha", "beta")
        look_at = s.host.dispatcher.wake_here
        stop = asyncio.Event()

        async def held(session_id: str) -> str | None:
            return None if stop.is_set() else await look_at(session_id)

        s.host.dispatcher.wake_here = held  # type: ignore[method-assign]
        await s.say(room, "go")
        stop.set()
        await until(s.host, lambda: s.mentions(room))
        (waiting,), _ = await s.host.queue.page(room)
        assert (waiting.kind, waiting.author.name) == ("mention", "alpha")
        assert waiting.content == (TextContent(text="@beta"),)
        with pytest.raises(CallboardError, match="another agent of the room") as error:
            await s.host.queue.update(room, waiting.event_seq, (TextContent(text="x"),), by=CLIENT)
        assert error.value.kind == "promptNotFound"
        await s.host.queue.remove(room, waiting.event_seq, by=CLIENT)
        stop.clear()
        await s.host.dispatcher.wake(room)
        await s.rest(room)
        assert await s.turns(room) == ["alpha"]
