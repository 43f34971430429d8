"""Going back to before a turn: events stay, context does not (specs/execution.md 3, Preparation)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sessions_kit import Gate, Player, asks_for, host_with, says

from callboard.host import Host
from callboard.models.base import AssistantMessage, ModelRequest, Text, ToolMessage, UserMessage
from callboard.turns.reservation import Reservations
from callboard_rpc.common import Usage
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, idle, log_of, new_session, say

pytestmark = pytest.mark.anyio

ALLOW = '[approvals.policy]\nexecute = "allow"\nwrite = "allow"\n'


async def turn(host: Host, session_id: str, text: str) -> str:
    """A prompt, to its end; the turn's id."""
    await say(host, session_id, text)
    waited = await idle(host, session_id)
    assert waited.reason == "idle"
    return waited.turn.turn_id


async def rewind(host: Host, session_id: str, turn_id: str) -> Any:
    return (await host.rewinding.rewind(session_id, turn_id, by=CLIENT)).value


async def refused(host: Host, session_id: str, turn_id: str) -> CallboardError:
    with pytest.raises(CallboardError) as error:
        await host.rewinding.rewind(session_id, turn_id, by=CLIENT)
    return error.value


def texts(request: ModelRequest) -> list[str]:
    """What a request tells the model, block by block."""
    out: list[str] = []
    for message in request.messages:
        match message:
            case UserMessage() | AssistantMessage():
                out += [block.text for block in message.blocks if isinstance(block, Text)]
            case ToolMessage():
                out += [f"({output.text})" for output in message.outputs]
    return out


async def test_context_is_that_of_before_and_the_log_keeps_all(tmp_path: Path) -> None:
    player = Player([says("1"), says("2"), says("3"), says("again")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        _, second, _ = [await turn(host, session_id, text) for text in ("one", "two", "three")]
        before = await log_of(host, session_id)
        event = await rewind(host, session_id, second)
        after = await log_of(host, session_id)
        assert [r.event_id for r in after[:-1]] == [r.event_id for r in before]
        assert [r.seq for r in after] == list(range(1, len(after) + 1))
        assert event.turns == 2
        started = next(r for r in before if r.type == "turn_started" and r.turn_id == second)
        assert (event.before_seq, event.through_seq) == (started.seq, before[-1].seq)
        assert event.prompts == (started.seq - 1,)
        await turn(host, session_id, "other")
        assert texts(player.requests[-1]) == ["one", "1", "other"]


async def test_read_models_are_those_of_before(tmp_path: Path) -> None:
    def spent(context: int) -> Usage:
        return Usage(requests=1, input_tokens=context, output_tokens=1, context_tokens=context)

    async def fails(_: ModelRequest) -> Any:
        raise RuntimeError("no")
        yield

    player = Player([says("1", usage=spent(10)), fails, says("3", usage=spent(30))])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        first, second, _ = [await turn(host, session_id, text) for text in ("one", "two", "three")]
        third = await host.reading.last_turn(session_id)
        assert third is not None
        await rewind(host, session_id, third.turn_id)
        session = await host.reading.session(session_id)
        assert session.last_outcome == "failed"
        await rewind(host, session_id, second)
        session = await host.reading.session(session_id)
        turns, _ = await host.reading.turns(session_id)
        waited = await idle(host, session_id)
        assert [each.turn_id for each in turns] == [first]
        assert (waited.turn.turn_id, waited.turn.final_text) == (first, "1")
        assert session.last_outcome == "completed"
        assert session.status == "idle"
        assert session.usage is not None
        assert session.usage.context_tokens == 10
        assert session.usage.input_tokens == 40  # what was spent stays spent
        await turn(host, session_id, "other")
        turns, _ = await host.reading.turns(session_id)
        assert [each.index for each in turns] == [0, 3]  # indices are never used again


async def test_to_the_first_turn_nothing_is_context(tmp_path: Path) -> None:
    player = Player([says("1"), says("2")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        first = await turn(host, session_id, "one")
        await rewind(host, session_id, first)
        session = await host.reading.session(session_id)
        assert session.last_outcome is None
        assert await host.reading.last_turn(session_id) is None
        await turn(host, session_id, "other")
        assert texts(player.requests[-1]) == ["other"]


async def test_twice_and_also_after_a_restart(tmp_path: Path) -> None:
    player = Player([says(n) for n in "123456"])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        _, second, third = [await turn(host, session_id, text) for text in ("one", "two", "three")]
        await rewind(host, session_id, third)
        fourth = await turn(host, session_id, "four")
        gone = await refused(host, session_id, third)
        assert gone.kind == "turnNotFound"
        assert "rewound already" in gone.message
        event = await rewind(host, session_id, second)
        assert event.turns == 2  # the second and the fourth; the third was gone
        assert (await refused(host, session_id, fourth)).kind == "turnNotFound"
    async with host_with(tmp_path, player) as host:
        await turn(host, session_id, "other")
        assert texts(player.requests[-1]) == ["one", "1", "other"]


async def test_before_a_summary_what_it_stood_for_is_context_again(tmp_path: Path) -> None:
    player = Player([says("1"), says("2"), says("A summary."), says("3"), says("4")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await turn(host, session_id, "one")
        second = await turn(host, session_id, "two")
        assert await host.compacting.compact(session_id, by=CLIENT, instructions=None) is not None
        third = await turn(host, session_id, "three")
        assert "A summary." in texts(player.requests[-1])[0]
        await rewind(host, session_id, third)
        await turn(host, session_id, "after")
        assert "A summary." in texts(player.requests[-1])[0]  # it was made before that turn
        await rewind(host, session_id, second)
        await turn(host, session_id, "before")
        assert texts(player.requests[-1]) == ["one", "1", "before"]


async def test_a_prompt_that_was_queued_in_an_earlier_turn_goes_with_the_turn_that_took_it(
    tmp_path: Path,
) -> None:
    gate = Gate()
    player = Player([gate.before(says("1")), says("2"), says("3")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "one")
        await gate.came()
        queued = await say(host, session_id, "two")
        gate.opened.set()
        second = (await idle(host, session_id)).turn.turn_id
        event = await rewind(host, session_id, second)
        assert event.prompts == (queued.record.seq,)
        assert queued.record.seq < event.before_seq - 1
        await turn(host, session_id, "other")
        assert texts(player.requests[-1]) == ["one", "1", "other"]


async def test_changed_files_are_named_and_left_as_they_are(tmp_path: Path) -> None:
    one = ("write_file", {"path": "a.txt", "content": "x\n"})
    two = ("write_file", {"path": "b.txt", "content": "y\n"})
    run = ("run_command", {"command": "true"})
    player = Player([asks_for(one), says("1"), asks_for(two, two, run), says("2")])
    async with host_with(tmp_path, player, config=ALLOW) as host:
        session_id = await new_session(host, tmp_path)
        await turn(host, session_id, "one")
        event = await rewind(host, session_id, await turn(host, session_id, "two"))
        assert [Path(path).name for path in event.changed_paths] == ["b.txt"]
        assert event.commands == 1
        first = (await idle(host, session_id)).turn.turn_id
        event = await rewind(host, session_id, first)
        assert [Path(path).name for path in event.changed_paths] == ["a.txt"]
        assert event.commands == 0
        assert (tmp_path / "a.txt").read_text() == "x\n"


async def test_a_rule_that_was_given_for_the_session_in_a_rewound_turn_goes_with_it(
    tmp_path: Path,
) -> None:
    run = ("run_command", {"command": "echo hello"})
    player = Player([says("0"), asks_for(run), says("1"), asks_for(run), says("2")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await turn(host, session_id, "zero")
        for text in ("one", "two"):
            await say(host, session_id, text)
            waited = await host.waiting.wait(
                session_id, until="attention", turn_id=None, timeout_s=30
            )
            assert [each.state for each in waited.approvals] == ["pending"]
            await host.approvals.answer(
                waited.approvals[0].approval_id, "allow_session", by=CLIENT, via="api"
            )
            await idle(host, session_id)
            rules, _ = await host.approvals.rules()
            assert [rule.scope for rule in rules] == ["session"]
            last = await host.reading.last_turn(session_id)
            assert last is not None
            event = await rewind(host, session_id, last.turn_id)
            assert event.rules == (rules[0].rule_id,)
            assert await host.approvals.rules() == ([], None)


async def test_execution_29_a_session_that_is_not_at_rest_is_not_rewound(tmp_path: Path) -> None:
    gate = Gate()
    player = Player([says("1"), gate.before(says("2"))])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        first = await turn(host, session_id, "one")
        await say(host, session_id, "two")
        await gate.came()
        running = await refused(host, session_id, first)
        live = host.dispatcher.live(session_id)
        assert live is not None
        assert (running.kind, running.data) == ("turnInProgress", {"turnId": live.turn_id})
        gate.opened.set()
        await idle(host, session_id)
        elsewhere = Reservations(host.log, "host_elsewhere")
        async with await elsewhere.prepare(session_id):
            assert (await refused(host, session_id, first)).kind == "turnInProgress"
            posted = await say(host, session_id, "three")
            assert posted.outcome == "queued"
        waiting = await refused(host, session_id, first)
        assert waiting.kind == "turnInProgress"
        assert "1 prompts waiting" in waiting.message
        await host.sessions.cancel(session_id, by=CLIENT, scope="queue")
        assert (await rewind(host, session_id, first)).turns == 2


async def test_a_prompt_that_comes_during_a_rewind_is_answered_in_the_context_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = Player([says("1"), says("2"), says("3")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await turn(host, session_id, "one")
        second = await turn(host, session_id, "two")
        cut = type(host.rewinding)._cut

        async def slowly(self: Any, *args: Any) -> Any:
            await say(host, session_id, "meanwhile")
            return await cut(self, *args)

        monkeypatch.setattr(type(host.rewinding), "_cut", slowly)
        await rewind(host, session_id, second)
        await idle(host, session_id)
        assert texts(player.requests[-1]) == ["one", "1", "meanwhile"]


async def test_execution_6_a_rewind_that_is_cancelled_anywhere_leaves_no_owner(
    tmp_path: Path,
) -> None:
    player = Player([])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        for steps in range(0, 30, 3):
            turn_id = await turn(host, session_id, "one")
            before = len(await log_of(host, session_id))
            task = asyncio.ensure_future(host.rewinding.rewind(session_id, turn_id, by=CLIENT))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await host.log.transact(lambda tx: None)
            await host.reservations.settled()
            events = (await log_of(host, session_id))[before:]
            assert [r.type for r in events] in ([], ["session_rewound"])
            owned = await host.log.query("SELECT 1 FROM owners WHERE fence IS NOT NULL")
            assert owned == []


@pytest.mark.parametrize(
    ("state", "kind"),
    [("closed", "sessionClosed"), ("archived", "sessionArchived"), ("deleted", "sessionNotFound")],
)
async def test_a_session_that_is_put_away_is_not_rewound(
    tmp_path: Path, state: str, kind: str
) -> None:
    async with host_with(tmp_path, Player([])) as host:
        session_id = await new_session(host, tmp_path)
        first = await turn(host, session_id, "one")
        if state == "closed":
            await host.sessions.close(session_id, by=CLIENT)
        elif state == "archived":
            await host.sessions.set_archived(session_id, archived=True, by=CLIENT)
        else:
            await host.sessions.delete(session_id, by=CLIENT)
        assert (await refused(host, session_id, first)).kind == kind
        rows = await host.log.query("SELECT 1 FROM owners WHERE fence IS NOT NULL")
        assert rows == []


async def test_a_turn_that_never_was_is_not_found(tmp_path: Path) -> None:
    async with host_with(tmp_path, Player([])) as host:
        session_id, other = [await new_session(host, tmp_path) for _ in range(2)]
        await turn(host, session_id, "one")
        foreign = await turn(host, other, "one")
        before = len(await log_of(host, session_id))
        for turn_id in ("trn_nothing", "", foreign):
            assert (await refused(host, session_id, turn_id)).kind == "turnNotFound"
        assert len(await log_of(host, session_id)) == before
