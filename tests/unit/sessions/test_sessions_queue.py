"""Prompts that wait are listed, changed and removed while nobody has read them; one side wins."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sessions_kit import Gate, Player, asks_for, host_with, says

from callboard.host import Host
from callboard.models.base import Text, ToolMessage, UserMessage
from callboard.turns.reservation import SYSTEM, Reservations
from callboard_rpc.common import MessageId, TextContent
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author, Directive
from harness.inside import CLIENT, PERSON, idle, log_of, new_session, say

pytestmark = pytest.mark.anyio


def text(said: str) -> tuple[TextContent, ...]:
    return (TextContent(text=said),)


async def queue(host: Host, session_id: str) -> list[Any]:
    page, _ = await host.queue.page(session_id)
    return page


async def refused(work: Any) -> CallboardError:
    with pytest.raises(CallboardError) as error:
        await work
    return error.value


def heard(player: Player) -> list[str]:
    return [
        block.text
        for message in player.requests[-1].messages
        if isinstance(message, UserMessage)
        for block in message.blocks
        if isinstance(block, Text)
    ]


async def test_waiting_prompts_are_listed_in_order_with_who_said_what(tmp_path: Path) -> None:
    gate = Gate()
    async with host_with(tmp_path, Player([gate.before(says("1"))])) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "one")
        await gate.came()
        long = "x" * 200_000
        second = await say(host, session_id, long, client_message_id="c2")
        third = await say(host, session_id, "three", delivery="steer")
        listed = await queue(host, session_id)
        assert [each.event_seq for each in listed] == [second.record.seq, third.record.seq]
        assert [each.content for each in listed] == [text(long), text("three")]
        assert [each.client_message_id for each in listed] == ["c2", None]
        assert [each.delivery for each in listed] == ["queue", "steer"]
        assert [each.author for each in listed] == [PERSON, PERSON]
        first, after = await host.queue.page(session_id, limit=1)
        rest, end = await host.queue.page(session_id, after=after or 0, limit=1)
        assert [each.event_seq for each in first + rest] == [second.record.seq, third.record.seq]
        assert end is None
        gate.opened.set()
        await idle(host, session_id)
        assert await queue(host, session_id) == []


async def test_what_is_read_is_what_it_was_changed_to_last(tmp_path: Path) -> None:
    gate = Gate()
    player = Player([gate.before(says("1")), says("2")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "one")
        await gate.came()
        seq = (await say(host, session_id, "two")).record.seq
        long = "y" * 200_000
        await host.queue.update(session_id, seq, text(long), by=CLIENT)
        ((only),) = await queue(host, session_id)
        assert only.content == text(long)
        assert only.updated_at is not None
        await host.queue.update(session_id, seq, text("new"), by=CLIENT)
        gate.opened.set()
        await idle(host, session_id)
        assert heard(player) == ["one", "new"]
        records = await log_of(host, session_id)
        said = next(r for r in records if r.seq == seq)
        assert said.value.content == text("two")  # what was said first is still in the log
    player = Player([says("3")])
    async with host_with(tmp_path, player) as host:
        await say(host, session_id, "three")
        await idle(host, session_id)
        assert heard(player) == ["one", "new", "three"]


async def test_a_large_change_is_read_whole(tmp_path: Path) -> None:
    gate = Gate()
    player = Player([gate.before(says("1")), says("2")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "one")
        await gate.came()
        seq = (await say(host, session_id, "x" * 200_000)).record.seq
        await host.queue.update(session_id, seq, text("y" * 150_000), by=CLIENT)
        gate.opened.set()
        await idle(host, session_id)
        assert heard(player) == ["one", "y" * 150_000]


async def test_what_is_removed_is_never_answered(tmp_path: Path) -> None:
    gate = Gate()
    player = Player([gate.before(says("1"))])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "one")
        await gate.came()
        seq = (await say(host, session_id, "two")).record.seq
        await host.queue.remove(session_id, seq, by=CLIENT)
        again = await refused(host.queue.remove(session_id, seq, by=CLIENT))
        assert again.kind == "promptNotFound"
        gate.opened.set()
        await idle(host, session_id)
        assert len(player.requests) == 1
        assert await host.reading.last_turn(session_id) is not None
        turns, _ = await host.reading.turns(session_id)
        assert len(turns) == 1


async def test_a_steer_that_is_removed_holds_no_later_call_up(tmp_path: Path) -> None:
    """Calls give way to a steer; but not for ever to one that is not there any more."""
    write = ("write_file", {"path": "a.txt", "content": "x\n"})
    gate = Gate()
    player = Player([gate.before(asks_for(write)), asks_for(write), says("done")])
    config = '[approvals.policy]\nwrite = "allow"\n'
    async with host_with(tmp_path, player, config=config) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "go")
        await gate.came()
        seq = (await say(host, session_id, "wait", delivery="steer")).record.seq
        live = host.dispatcher.live(session_id)
        assert live is not None
        while not live.steered:
            await host.log.moved(host.log.head - 1)
            await asyncio.sleep(0)
        await host.queue.remove(session_id, seq, by=CLIENT)
        gate.opened.set()
        await idle(host, session_id)
        last = player.requests[-1].messages[-1]
        assert isinstance(last, ToolMessage)
        assert (tmp_path / "a.txt").read_text() == "x\n"
        assert "wait" not in heard(player)


async def test_what_a_turn_has_taken_is_changed_and_removed_no_more(tmp_path: Path) -> None:
    gate = Gate()
    async with host_with(tmp_path, Player([gate.before(says("1"))])) as host:
        session_id = await new_session(host, tmp_path)
        posted = await say(host, session_id, "one")
        await gate.came()
        for work in (
            host.queue.update(session_id, posted.record.seq, text("x"), by=CLIENT),
            host.queue.remove(session_id, posted.record.seq, by=CLIENT),
        ):
            error = await refused(work)
            assert (error.kind, error.data) == ("promptTaken", {"turnId": posted.turn_id})
        gate.opened.set()
        await idle(host, session_id)


async def test_of_a_change_and_the_start_of_its_turn_one_is_first(tmp_path: Path) -> None:
    """Both in one commit, in either order: what is answered is what the winner says."""
    async with host_with(tmp_path, Player([])) as host:
        player = Player([])

        async def resolve(model_id: str | None = None, *, text_tool_calls: bool = False) -> Player:
            return player

        host.catalog.resolve = resolve  # type: ignore[method-assign]
        outcomes: set[str] = set()
        elsewhere = Reservations(host.log, host.host_id)
        for steps in (None, *range(8), 10_000):
            session_id = await new_session(host, tmp_path)
            held = await elsewhere.prepare(session_id)
            seq = (await say(host, session_id, "old")).record.seq
            await held.abandon()

            async def change(
                session_id: str = session_id, seq: int = seq, n: int = steps or 0
            ) -> str:
                for _ in range(n):
                    if host.dispatcher.live(session_id) is not None:
                        break  # the turn has taken it
                    await asyncio.sleep(0)
                try:
                    await host.queue.update(session_id, seq, text("new"), by=CLIENT)
                except CallboardError as error:
                    assert error.kind == "promptTaken"
                    return "taken"
                return "changed"

            both = [change(), host.dispatcher.wake(session_id)]
            if steps is None:
                outcome, _ = await asyncio.gather(*both)  # the change is the first to be written
            else:
                _, outcome = await asyncio.gather(*reversed(both))
            await idle(host, session_id)
            assert heard(player) == ["new" if outcome == "changed" else "old"]
            outcomes.add(outcome)
        assert outcomes == {"taken", "changed"}


async def test_bad_changes_are_refused_by_name(tmp_path: Path) -> None:
    gate = Gate()
    async with host_with(tmp_path, Player([gate.before(says("1"))])) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "one")
        await gate.came()
        seq = (await say(host, session_id, "two")).record.seq
        update, remove = host.queue.update, host.queue.remove
        assert (await refused(update(session_id, seq, (), by=CLIENT))).kind == "invalidParams"
        assert (
            await refused(update(session_id, seq, text(" "), by=CLIENT))
        ).kind == "invalidParams"
        large = text("x" * (host.settings.limits.prompt_bytes + 1))
        assert (await refused(update(session_id, seq, large, by=CLIENT))).kind == "messageTooLarge"
        for wrong in (0, -1, seq + 1_000, 1):
            assert (await refused(remove(session_id, wrong, by=CLIENT))).kind == "promptNotFound"
        assert (await refused(remove("ses_no", seq, by=CLIENT))).kind == "sessionNotFound"
        directive = await host.log.append(
            session_id,
            Directive(
                message_id=MessageId("msg_d"),
                author=Author(kind="system", name="test"),
                text="do it",
            ),
            actor=SYSTEM,
        )
        listed = await queue(host, session_id)
        assert [(each.kind, each.content) for each in listed][-1] == ("directive", text("do it"))
        refusal = await refused(update(session_id, directive.seq, text("x"), by=CLIENT))
        assert refusal.kind == "promptNotFound"
        await remove(session_id, directive.seq, by=CLIENT)
        gate.opened.set()
        await idle(host, session_id)
