"""Messages between the children of one parent (interrupts-and-peers 3)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, heard, troupe
from messaging_kit import ON, AtWork, at_work, finished, until_event, waiting_for

from callboard.agents import siblings
from callboard.agents.examining import Caller, Wanted
from callboard.agents.interrupts import Verb
from callboard.agents.state import AgentState, apply, replay
from callboard.log.faults import StaleFence
from callboard.models.base import ModelRequest, UserMessage
from callboard.sessions.inbox import deliveries
from callboard.tools.base import ToolFailure
from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import EVENT_TYPES
from harness.inside import CLIENT, PERSON
from harness.puppets import Pause, calls, of, pauses, results, speaks

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


ROOMY = {**ON, "CALLBOARD_AGENTS_MAX_OPEN": "20", "CALLBOARD_AGENTS_MAX_RUNNING": "20"}
DEEP = {**ON, "CALLBOARD_AGENTS_MAX_DEPTH": "2"}


def tool(to: str, text: str, **more: Any) -> Any:
    return calls(("message", {"to": to, "text": text, **more}))


async def refused(
    sender: AtWork, to: str, text: str = "hello", *, expects_reply: bool = False
) -> str:
    with pytest.raises(ToolFailure) as refusal:
        await sender.writes(to, text, expects_reply=expects_reply)
    return str(refusal.value).partition(":")[0]


def all_queued(t: Troupe) -> int:
    return t.host.log.glance("SELECT count(*) FROM inbox WHERE kind = 'sibling'")[0][0]


async def emptied(t: Troupe, agent_id: str) -> None:
    """Takes everything out of an agent's inbox, as if it had been read."""

    def drop(tx: Any) -> None:
        deliveries.drop_all(tx, agent_id, by=CLIENT, reason="the test has read it")

    await t.host.log.transact(drop)


def parts(request: ModelRequest) -> list[str]:
    """The texts of the last user message of a request."""
    last = next(m for m in reversed(request.messages) if isinstance(m, UserMessage))
    return [block.text for block in last.blocks if hasattr(block, "text")]  # type: ignore[union-attr]


# --- who may write to whom ----------------------------------------------------------------------


async def test_peers_29_four_refusals_that_differ_in_the_order_of_the_checks_and_nothing_is_queued(
    tmp_path: Path,
) -> None:
    environ = {**ROOMY, **DEEP}
    async with troupe(tmp_path, environ=environ) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b", "late", "cousin"))
        b = await at_work(t, root, "b")
        cousin = await at_work(t, b.agent_id, "cousin")

        assert await refused(a, "b", expects_reply=True) == "no_reply_between_agents"
        # what comes first decides: nobody learns from it who is there
        assert await refused(a, "nobody", expects_reply=True) == "no_reply_between_agents"
        assert await refused(a, "nobody") == "not_allowed"
        assert await refused(b, "a") == "not_allowed"
        assert await refused(a, "late") == "not_spawned"
        assert await refused(a, "cousin") == "other_parent"
        # an id is no name, and opens nothing
        assert await refused(a, cousin.agent_id) == "not_allowed"
        assert await refused(a, b.agent_id) == "not_allowed"
        assert all_queued(t) == 0
        assert not of(await t.log(b.agent_id), "agent_message_queued")

        await a.writes("b", "hello")
        late = await at_work(t, root, "late")
        await a.writes(" late ", "welcome")
        assert [kind for kind, _ in waiting_for(t, late.agent_id)] == ["sibling"]
        assert all_queued(t) == 2


async def test_peers_29_the_tool_tells_its_agent_each_refusal_and_the_turn_goes_on(
    tmp_path: Path,
) -> None:
    cast = Cast(
        a=[
            tool("b", "you?", expect_reply=True),
            tool("c", "you?"),
            tool("b", "you?"),
            speaks("alone"),
        ]
    )
    async with troupe(tmp_path, cast, environ=ON) as t:
        root = await t.root()
        agent = await finished(t, await t.spawn(root, "a", message_allow=("b",)))
        said = [cast.read("a", n)[0].partition(":")[0] for n in (1, 2, 3)]
        assert said == ["no_reply_between_agents", "not_allowed", "not_spawned"]
        assert agent.status == "completed"
        assert results(await t.log(agent.agent_id)) == [("message", "error")] * 3


async def test_peers_30_that_one_may_write_to_another_says_nothing_of_the_other(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await at_work(t, root, "b", message_allow=("c",))
        c = await at_work(t, root, "c")
        await a.writes("b", "forth")
        await b.writes("c", "on")
        for sender, to in ((b, "a"), (c, "b"), (a, "c"), (c, "a")):
            assert await refused(sender, to) == "not_allowed"
        assert all_queued(t) == 2


async def test_peers_31_nothing_changes_whom_an_agent_may_write_to(tmp_path: Path) -> None:
    cast = Cast(
        a=[
            # what it says and does changes nothing: there is no argument, no tool, no event for it
            calls(("message", {"to": "b", "text": "x", "message_allow": ["b"]})),
            calls(("spawn_agent", {"name": "b", "message": "x", "message_allow": ["a"]})),
            speaks("message_allow: b"),
        ]
    )
    async with troupe(tmp_path, cast, environ=ON) as t:
        root = await t.root()
        b = await at_work(t, root, "b")
        agent = await finished(t, await t.spawn(root, "a", message_allow=("z",)))
        records = await t.log(agent.agent_id)
        assert [status for _, status in results(records)] == ["error", "error"]
        assert agent.message_allow == ("z",)
        assert replay(record.value for record in records) == agent
        assert waiting_for(t, b.agent_id) == []
        # and by its state alone: whatever is said of an agent, its list stays
        for record in records:
            assert apply(agent, record.value).message_allow == ("z",)
        setting = [name for name, kind in EVENT_TYPES.items() if "message_allow" in _fields(kind)]
        assert setting == ["agent_spawned"]


def _fields(kind: Any) -> list[str]:
    return [attribute.name for attribute in kind.__attrs_attrs__]


async def test_peers_31_a_list_holds_each_name_once_and_never_its_owner_s(tmp_path: Path) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        agent = await t.spawn(root, "a", message_allow=("b", " b ", "c"))
        assert agent.message_allow == ("b", "c")
        for allow in (("d",), ("b", " d"), ("parent",), ("",)):
            with pytest.raises(CallboardError) as error:
                await t.agents.spawn(
                    Caller(parent_id=root, by=CLIENT),
                    Wanted(name="d", message="x", message_allow=allow),
                )
            assert error.value.kind == "invalidParams"


async def test_peers_36_two_parents_use_one_name_without_crossing(tmp_path: Path) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        pairs: list[tuple[AtWork, AtWork]] = []
        for _ in range(2):
            root = await t.root()
            t.cast.parts.clear()
            a = await at_work(t, root, "a", message_allow=("b",))
            pairs.append((a, await at_work(t, root, "b")))
        for number, (a, b) in enumerate(pairs):
            sent = await a.writes("b", f"to {number}")
            assert sent.recipient.agent_id == b.agent_id
        for number, (_, b) in enumerate(pairs):
            (queued,) = of(await t.log(b.agent_id), "agent_message_queued")
            assert queued.text == f"to {number}"


async def test_peers_36_two_parents_of_one_tree_use_one_name_without_crossing(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=DEEP) as t:
        root = await t.root()
        above = await at_work(t, root, "b")
        a = await at_work(t, root, "a", message_allow=("b",))
        below = await at_work(t, a.agent_id, "b")
        inner = await at_work(t, a.agent_id, "c", message_allow=("b",))
        assert (await a.writes("b", "outside")).recipient.agent_id == above.agent_id
        assert (await inner.writes("b", "inside")).recipient.agent_id == below.agent_id


async def test_peers_36_a_name_that_is_used_again_means_who_has_it_now(tmp_path: Path) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        first = await at_work(t, root, "b")
        await t.agents.close(first.agent_id, by=CLIENT)
        assert await refused(a, "b") == "recipient_finished"
        second = await at_work(t, root, "b")
        assert (await a.writes("b", "hello")).recipient.agent_id == second.agent_id


# --- whom a message reaches ---------------------------------------------------------------------


async def test_peers_29_a_sibling_that_has_finished_is_not_woken_and_the_sender_is_told(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("done", "stopped"))
        done = await finished(t, await t.spawn(root, "done"))
        stopped = await at_work(t, root, "stopped")
        await t.agents.interrupt(
            stopped.agent_id, Verb(kind="abort", by=CLIENT, origin="user", reason="no")
        )
        await finished(t, stopped.agent)
        for name in ("done", "stopped"):
            assert await refused(a, name) == "recipient_finished"
        assert all_queued(t) == 0
        assert len(of(await t.log(done.agent_id), "turn_started")) == 1


async def test_peers_32_a_message_starts_nothing_and_is_read_by_the_turn_that_waits_for_room(
    tmp_path: Path,
) -> None:
    environ = {**ON, "CALLBOARD_AGENTS_MAX_RUNNING": "1"}
    async with troupe(tmp_path, environ=environ) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await t.spawn(root, "b")
        assert b.status == "starting"
        await a.writes("b", "before you begin")
        assert t.agents.agent(b.agent_id).status == "starting"
        a.pause.open.set()
        await finished(t, b)
        assert "before you begin" in t.cast.heard("b", 0)


async def test_peers_32_a_message_during_the_last_answer_is_read_in_the_same_turn(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await at_work(t, root, "b", speaks("I have read it"))
        await a.writes("b", "one more thing")
        b.pause.open.set()
        await finished(t, b.agent)
        records = await t.log(b.agent_id)
        assert len(of(records, "turn_finished")) == 1
        assert "one more thing" in t.cast.heard("b")


async def test_peers_32_all_that_came_is_one_message_with_two_parts_each_in_the_order_of_each_sender(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ROOMY) as t:
        root = await t.root()
        b = await at_work(t, root, "b", speaks("read"))
        one = await at_work(t, root, "o<n>e", message_allow=("b",))
        two = await at_work(t, root, "two", message_allow=("b",))
        for number in range(3):
            await one.writes("b", f"one & {number}")
            await t.agents.send(
                b.agent_id, f"from above {number}", goes_on=False, author=PERSON, by=CLIENT
            )
            await two.writes("b", f"<two> {number}")
        b.pause.open.set()
        await finished(t, b.agent)

        records = await t.log(b.agent_id)
        messages = [m for m in of(records, "message") if m.delivered is not None]
        mail = [m for m in messages if m.delivered.kind == "sibling"]
        assert len(messages) == 4 and len(mail) == 1
        (joined,) = mail
        assert len(joined.content) == 12 and len(joined.joined) == 5
        texts = [block.text for block in joined.content]
        order = [(t.partition("\n")[0], t.split("\n")[1]) for t in texts[::2]]
        assert order == [
            ('<agent-message from="o&lt;n&gt;e">', "one &amp; 0"),
            ('<agent-message from="two">', "&lt;two&gt; 0"),
            ('<agent-message from="o&lt;n&gt;e">', "one &amp; 1"),
            ('<agent-message from="two">', "&lt;two&gt; 1"),
            ('<agent-message from="o&lt;n&gt;e">', "one &amp; 2"),
            ('<agent-message from="two">', "&lt;two&gt; 2"),
        ]
        assert texts[1] == "Message from o&lt;n&gt;e: one &amp; 0"
        audiences = [block.meta["audience"] for block in joined.content]
        assert audiences == ["model", "person"] * 6
        # by their names, and by nothing else, since that is how they are written to
        for sender in (one, two):
            assert not any(sender.agent_id in text for text in texts)
        assert len([r for r in records if r.type == "message" and r.value.delivered]) == 4
        # it was heard in one request, which is the one after
        assert heard(t.cast.requests["b"][1]).count("<agent-message") == 6
        assert len(t.cast.requests["b"]) == 2


async def test_peers_33_the_boundary_that_tells_of_a_cancel_takes_in_no_message(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        told, pause = [], Pause()

        async def winds_down(request: ModelRequest) -> Any:
            told.extend(waiting_for(t, b.agent_id))
            async for event in pauses(pause, "winding down")(request):
                yield event

        b = await at_work(t, root, "b", winds_down, speaks("read"))
        await a.writes("b", "and this")
        await t.agents.interrupt(
            b.agent_id, Verb(kind="cancel", by=CLIENT, origin="user", reason="stop")
        )
        b.pause.open.set()
        await pause.came()
        assert "<agent-interrupt" in t.cast.heard("b", 1)
        assert "<agent-message" not in t.cast.heard("b", 1)
        assert [kind for kind, _ in told] == ["sibling"]
        pause.open.set()
        assert (await finished(t, b.agent)).status == "interrupted"
        assert "<agent-message" in t.cast.heard("b", 2)
        assert len(t.cast.requests["b"]) == 3


async def test_peers_33_the_boundary_that_tells_of_a_correction_takes_in_messages(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await at_work(t, root, "b", speaks("read"))
        await a.writes("b", "and this")
        await t.agents.interrupt(
            b.agent_id, Verb(kind="steer", by=CLIENT, origin="user", reason="left")
        )
        b.pause.open.set()
        await finished(t, b.agent)
        second = t.cast.heard("b", 1)
        assert second.index("<agent-interrupt") < second.index("<agent-message")


# --- limits -------------------------------------------------------------------------------------


async def test_peers_35_the_fifty_first_that_waits_is_refused_and_its_sender_told(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ROOMY) as t:
        root = await t.root()
        b = await at_work(t, root, "b")
        senders = [await at_work(t, root, f"s{n}", message_allow=("b",)) for n in range(4)]
        for n in range(50):
            await senders[n % 3].writes("b", f"message {n}")
        assert await refused(senders[3], "b", "one too many") == "queue_full"
        assert len(waiting_for(t, b.agent_id)) == 50
        # the same again is no more than there is already
        again = await senders[0].writes("b", "message 48")
        assert again.message_id is None
        assert len(waiting_for(t, b.agent_id)) == 50
        # what was refused has cost nothing
        await emptied(t, b.agent_id)
        for n in range(20):
            await senders[3].writes("b", f"from the last {n}")


async def test_peers_35_of_many_that_race_for_the_last_places_as_many_win_as_there_are(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ROOMY) as t:
        root = await t.root()
        b = await at_work(t, root, "b")
        senders = [await at_work(t, root, f"s{n}", message_allow=("b",)) for n in range(4)]
        sent = await asyncio.gather(
            *(s.writes("b", f"{n}") for n in range(15) for s in senders), return_exceptions=True
        )
        assert len(waiting_for(t, b.agent_id)) == 50
        assert sum(isinstance(each, ToolFailure) for each in sent) == 10
        await emptied(t, b.agent_id)
        # the same sender's last places
        left = 20 - sum(
            q.author.id == senders[0].agent_id
            for q in of(await t.log(b.agent_id), "agent_message_queued")
        )
        again = await asyncio.gather(
            *(senders[0].writes("b", f"again {n}") for n in range(20)), return_exceptions=True
        )
        assert sum(not isinstance(each, ToolFailure) for each in again) == left


async def test_peers_35_an_agent_sends_twenty_messages_in_its_life_to_whomever(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b", "c"))
        b, c = await at_work(t, root, "b"), await at_work(t, root, "c")
        for n in range(20):
            if n:  # what is not sent is not counted
                assert (await a.writes("cb"[n % 2], f"message {n - 1}")).message_id is None
            await a.writes("bc"[n % 2], f"message {n}")
        assert await refused(a, "b", "the twenty-first") == "limit_reached"
        # not even one that would not have been sent
        assert await refused(a, "b", "message 18") == "limit_reached"
        await emptied(t, b.agent_id)
        await emptied(t, c.agent_id)
    async with troupe(tmp_path, environ=ON) as t:
        t.cast.parts["a"] = [tool("b", "after a restart"), speaks("no")]
        await at_work(t, root, "d")
        t.cast.parts["b"] = [pauses(Pause(), "")]
        for agent in (b, a):
            await t.agents.send(agent.agent_id, "go on", goes_on=True, author=PERSON, by=CLIENT)
        await finished(t, a.agent)
        assert t.cast.read("a")[0].startswith("limit_reached: ")


async def test_peers_35_the_same_again_is_a_silent_success_among_the_last_hundred(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ROOMY) as t:
        root = await t.root()
        b = await at_work(t, root, "b")
        senders = [await at_work(t, root, f"s{n}", message_allow=("b",)) for n in range(7)]
        first = await senders[0].writes("b", "hello")
        assert (await senders[0].writes("b", "hello")).message_id is None
        assert (await senders[1].writes("b", "hello")).message_id is not None  # another sender's
        assert (await senders[0].writes("b", "hello ")).message_id is not None
        others = [(sender, n) for n in range(18) for sender in senders[1:]]
        for sender, n in others[:97]:
            if len(waiting_for(t, b.agent_id)) == 50:
                await emptied(t, b.agent_id)  # read ones count, too
            await sender.writes("b", f"message {n}")
        # one hundred were sent, of which the first is still one
        assert (await senders[0].writes("b", "hello")).message_id is None
        await emptied(t, b.agent_id)
        await senders[6].writes("b", "the hundred and first")
        again = await senders[0].writes("b", "hello")
        assert again.message_id not in (None, first.message_id)


async def test_peers_35_all_agents_of_a_tree_share_one_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert siblings.MAX_IN_TREE == 2_000
    monkeypatch.setattr(siblings, "MAX_IN_TREE", 4)
    async with troupe(tmp_path, environ=ON) as t:
        root, other = await t.root(), await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await at_work(t, root, "b", message_allow=("a",))
        t.cast.parts.clear()
        stranger = await at_work(t, other, "a", message_allow=("b",))
        await at_work(t, other, "b")
        for n in range(2):
            await a.writes("b", f"message {n}")
            await b.writes("a", f"message {n}")
        assert await refused(a, "b", "five") == "limit_reached"
        assert await refused(b, "a", "five") == "limit_reached"
        await stranger.writes("b", "it is none of theirs")


async def test_peers_2_a_sibling_s_message_has_at_most_16000_characters(tmp_path: Path) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await at_work(t, root, "b")
        await a.writes("b", "ä" * 16_000)
        for text, kind in (("ä" * 16_001, "messageTooLarge"), ("  ", "invalidParams")):
            with pytest.raises(CallboardError) as error:
                await a.writes("b", text)
            assert error.value.kind == kind
        (queued,) = of(await t.log(b.agent_id), "agent_message_queued")
        assert queued.text == "ä" * 16_000
        assert (queued.kind, queued.author.name, queued.author.id) == ("sibling", "a", a.agent_id)


async def test_peers_32_what_an_agent_wrote_is_written_by_it_and_only_while_its_turn_runs(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await at_work(t, root, "b")
        await a.writes("b", "mine")
        (record,) = [r for r in await t.log(b.agent_id) if r.type == "agent_message_queued"]
        assert record.by == Actor(kind="agent", id=a.agent_id, name="a")
        a.pause.open.set()
        await finished(t, a.agent)
        for write in (a.writes("b", "late"), a.asks("late", expects_reply=False)):
            with pytest.raises(StaleFence):
                await write
        assert len(waiting_for(t, b.agent_id)) == 1


# --- restarts and the flag ----------------------------------------------------------------------


async def test_peers_32_what_waits_survives_a_restart_and_is_read_once(tmp_path: Path) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await at_work(t, root, "b")
        await a.writes("b", "remember this")
    async with troupe(tmp_path, environ=ON) as t:
        assert t.agents.agent(b.agent_id).status == "interrupted"
        await t.agents.send(b.agent_id, "go on", goes_on=True, author=PERSON, by=CLIENT)
        await finished(t, b.agent)
        assert t.cast.heard("b").count("<agent-message") == 1
        messages = [m for m in of(await t.log(b.agent_id), "message") if m.delivered is not None]
        assert [m.delivered.kind for m in messages] == ["continue", "sibling"]
        assert waiting_for(t, b.agent_id) == []


async def test_peers_34_switched_off_there_is_no_tool_and_what_was_queued_is_left_as_it_is(
    tmp_path: Path,
) -> None:
    names = {"message", "reply", "wait_for_messages"}
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await at_work(t, root, "b")
        await a.writes("b", "remember this")
        before = t.host.log.glance("SELECT * FROM inbox")
        assert names <= {spec.name for spec in t.cast.requests["a"][0].tools}
        assert "`message`" in t.cast.heard("a")
    async with troupe(tmp_path) as t:
        t.cast.parts["b"] = [tool("parent", "can you hear me?"), speaks("done")]
        await t.agents.send(b.agent_id, "go on", goes_on=True, author=PERSON, by=CLIENT)
        assert (await finished(t, b.agent)).status == "completed"
        request = t.cast.requests["b"][0]
        assert not names & {spec.name for spec in request.tools}
        assert "There is no tool 'message'" in t.cast.read("b", 1)[0]
        assert "<agent-message" not in t.cast.heard("b")
        assert [
            row for row in t.host.log.glance("SELECT * FROM inbox") if row[0] == b.agent_id
        ] == [row for row in before if row[0] == b.agent_id]
        agent = await finished(t, await t.spawn(root, "c", message_allow=("b",)))
        assert "`message`" not in t.cast.heard("c")
        assert agent.message_allow == ("b",)
    async with troupe(tmp_path, environ=ON) as t:
        await t.agents.send(b.agent_id, "go on", goes_on=True, author=PERSON, by=CLIENT)
        await finished(t, b.agent)
        assert "remember this" in t.cast.heard("b")


async def test_peers_34_tools_are_the_same_for_every_agent_whatever_there_is_around_it(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        first = t.cast.requests["root"][0].tools
        a = await at_work(t, root, "a", message_allow=("b",))
        await at_work(t, root, "b")
        await a.writes("b", "hello")
        await t.say(root)
        await until_event(t, root, "turn_finished", lambda e: e.final_text is not None)
        await t.idle(root)
        assert t.cast.requests["root"][-1].tools == first
        assert t.cast.requests["a"][0].tools == t.cast.requests["b"][0].tools == first


async def test_peers_31_a_brief_tells_whom_its_agent_may_write_to(tmp_path: Path) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        agent: AgentState = await finished(
            t, await t.spawn(root, "a", message_allow=("b", "the 'other' one"))
        )
        assert agent.status == "completed"
        told = t.cast.heard("a")
        assert (
            "'parent', who can reply, and to these agents beside you: 'b', \"the 'other' one\"."
            in told
        )
        await finished(t, await t.spawn(root, "quiet", tools=("read_file",)))
        assert "`message`" not in t.cast.heard("quiet")


async def test_peers_32_what_is_counted_follows_from_the_log_and_goes_with_its_sessions(
    tmp_path: Path,
) -> None:
    tables = ("agents", "asks", "sibling_messages")

    def rows() -> dict[str, list[Any]]:
        return {each: sorted(t.host.log.glance(f"SELECT * FROM {each}")) for each in tables}

    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await at_work(t, root, "b", message_allow=("a",))
        await a.writes("b", "hello")
        await b.writes("a", "hello")
        await a.asks("news", expects_reply=False)
        _, waits = await a.asking("open")
        ask_id, answered = await b.asking("answered")
        await t.agents.reply(ask_id, "yes", author=PERSON, by=CLIENT)
        await answered
        before = rows()
        assert [len(before[each]) for each in tables] == [2, 3, 2]
        await t.host.log.rebuild()
        assert rows() == before
        waits.cancel()
        await t.host.sessions.delete(root, by=CLIENT)
        assert rows() == {each: [] for each in tables}
