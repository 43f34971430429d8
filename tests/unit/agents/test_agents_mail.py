"""Waiting for mail: what is sent while somebody looks is never missed (interrupts-and-peers 37)."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from attrs import define, field
from messaging_kit import ON, at_work, finished, settled, until_event, waiting_for

from callboard.agents.interrupts import Verb
from callboard.agents.mail import send
from callboard.agents.messaging import Mail, Messaging
from callboard.agents.projection import SQL
from callboard.models.base import ToolMessage
from callboard.sessions.inbox import deliveries
from callboard.sessions.inbox.state import Envelope
from callboard_rpc.common import TextContent
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, PERSON
from harness.interleaving import Race, every_order
from harness.puppets import calls, of, results, speaks

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


NEVER_S = 300.0
"""As good as for ever: who misses something waits longer than the test may take."""


@define
class Racing:
    """A log in which messages are sent at the worst moment: right after a look that has found none. They
    are committed before whoever looked goes on, and told as soon as it lets go of the loop.

    `batch` agents get theirs in one commit: the one that looked last has it between its look and its wait,
    the others while they wait.
    """

    log: Any
    batch: int
    sends: Callable[[Any, str], None]
    sent: int = 0
    looked: dict[str, None] = field(factory=dict[str, None])
    served: set[str] = field(factory=set[str])

    def watching_tree(self, session_id: str) -> Any:
        return self.log.watching_tree(session_id)

    def glance(self, sql: str, *params: Any) -> Any:
        rows = self.log.glance(sql, *params)
        if sql == SQL["count_waiting"] and params[0] not in self.served:
            assert rows == [(0,)]
            self.looked[params[0]] = None
            if len(self.looked) == self.batch:
                self._race(list(self.looked))
                self.looked.clear()
        return rows

    def _race(self, agent_ids: Sequence[str]) -> None:
        def commit(tx: Any) -> None:
            for each in agent_ids:
                self.sends(tx, each)

        self.log.submit(commit)
        self.log._writer._hand_over()  # as another process would, which does not wait for this loop
        with stopwatch() as late:
            while not self.log.glance(SQL["count_waiting"], agent_ids[-1])[0][0]:
                late()
        self.served.update(agent_ids)
        self.sent += len(agent_ids)


@contextmanager
def stopwatch(limit_s: float = 60.0) -> Iterator[Callable[[], None]]:
    """Lets other threads work, but not for ever."""
    end = time.monotonic() + limit_s

    def late() -> None:
        assert time.monotonic() < end
        time.sleep(0.0005)  # the writer has the interpreter

    yield late


async def _sends(t: Troupe, agent_id: str, text: str) -> None:
    await t.agents.send(agent_id, text, goes_on=False, author=PERSON, by=CLIENT)


async def _reads(t: Troupe, *agent_ids: str) -> None:
    def drop(tx: Any) -> None:
        for each in agent_ids:
            deliveries.drop_all(tx, each, by=CLIENT, reason="the test has read it")

    await t.host.log.transact(drop)


async def test_peers_37_10000_sends_that_race_a_look_lose_no_wake_up(tmp_path: Path) -> None:
    agents, rounds = 100, 100
    environ = {**ON, "CALLBOARD_AGENTS_MAX_OPEN": "100", "CALLBOARD_AGENTS_MAX_RUNNING": "100"}
    async with troupe(tmp_path, environ=environ) as t:
        root = await t.root()
        ids = [(await t.spawn(root, f"n{number}")).agent_id for number in range(agents)]
        for agent_id in ids:
            await finished(t, t.agents.agent(agent_id))

        def sends(tx: Any, agent_id: str) -> None:
            host_id = t.host.host_id
            send(tx, agent_id, "hello", goes_on=False, author=PERSON, by=CLIENT, host_id=host_id)

        sent = 0
        for _ in range(rounds):
            log: Any = Racing(t.host.log, 50, sends)
            messaging = Messaging(log, t.agents.settings, host_id=t.host.host_id)
            mails = await asyncio.gather(*(messaging.mail(each, timeout_s=NEVER_S) for each in ids))
            assert [mail.waiting for mail in mails] == [1] * agents
            sent += log.sent
            await _reads(t, *ids)
        assert sent == 10_000


async def test_peers_37_several_who_wait_for_the_same_all_hear_of_it(tmp_path: Path) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        agent = await finished(t, await t.spawn(root, "one"))
        waits = [
            asyncio.ensure_future(t.agents.messaging.mail(agent.agent_id, timeout_s=NEVER_S))
            for _ in range(20)
        ]
        await asyncio.sleep(0)
        assert not any(wait.done() for wait in waits)
        await _sends(t, agent.agent_id, "hello")
        assert [(await wait).waiting for wait in waits] == [1] * 20
        # and who comes later need not wait
        assert (await t.agents.messaging.mail(agent.agent_id, timeout_s=NEVER_S)).waiting == 1


async def test_peers_37_two_who_wait_and_one_who_sends_in_every_order_of_their_steps(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        agent = await finished(t, await t.spawn(root, "one"))

        async def scene(race: Race) -> None:
            first, second, sent = await race(
                t.agents.messaging.mail(agent.agent_id, timeout_s=NEVER_S),
                t.agents.messaging.mail(agent.agent_id, timeout_s=NEVER_S),
                _sends(t, agent.agent_id, "hello"),
            )
            assert (first, second, sent) == (Mail(waiting=1), Mail(waiting=1), None)
            await _reads(t, agent.agent_id)

        assert await every_order(scene, t.host, most=60) > 10


@pytest.mark.parametrize("outcome", ["replied", "cancelled"])
async def test_peers_20_28_a_question_has_one_end_in_every_order_of_what_could_end_it(
    tmp_path: Path, outcome: str
) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        number = 0

        async def scene(race: Race) -> None:
            nonlocal number
            number += 1
            child = await at_work(t, root, f"n{number}")
            ask_id, waits = await child.asking()
            verb = Verb(kind="steer", by=CLIENT, origin="user", reason="come")
            rivals = {
                "replied": lambda: t.agents.reply(ask_id, "me", author=PERSON, by=CLIENT),
                "cancelled": lambda: t.agents.interrupt(child.agent_id, verb),
            }
            said = await race(
                t.agents.reply(ask_id, "yes", author=PERSON, by=CLIENT), rivals[outcome]()
            )
            asked = await waits
            records = await t.log(child.agent_id)
            assert settled(records) == [(ask_id, asked.outcome)]
            refused = [each for each in said if isinstance(each, CallboardError)]
            assert {each.kind for each in refused} <= {"askSettled"}
            replies = [e.text for e in of(records, "agent_replied")]
            if asked.outcome == "replied":
                assert asked.reply in ("yes", "me") and replies == [asked.reply]
            assert len(refused) == (outcome == "replied" or asked.outcome == "cancelled")
            await t.agents.close(child.agent_id, by=CLIENT)

        assert await every_order(scene, t.host, most=25) > 5


# --- the tool -----------------------------------------------------------------------------------


async def test_peers_37_the_tool_tells_that_something_waits_and_the_boundary_tells_what(
    tmp_path: Path,
) -> None:
    cast = Cast(b=[calls(("wait_for_messages", {})), speaks("read")])
    async with troupe(tmp_path, cast, environ=ON) as t:
        root = await t.root()
        a = await at_work(t, root, "a", message_allow=("b",))
        b = await t.spawn(root, "b")
        await until_event(t, b.agent_id, "tool_call")
        await a.writes("b", "hello")
        await finished(t, b)
        assert cast.read("b", 1) == [{"reason": "message", "waiting": 1}]
        # the result first, and then the message
        assert isinstance(cast.requests["b"][1].messages[-2], ToolMessage)
        assert "hello" in cast.heard("b", 1)


async def test_peers_37_a_coordinator_waits_for_whatever_its_agents_say(tmp_path: Path) -> None:
    cast = Cast(
        root=[calls(("wait_for_messages", {})), speaks("noted")],
    )
    async with troupe(tmp_path, cast, environ=ON) as t:
        root = await t.root()
        child = await at_work(t, root, "one")
        await t.say(root)
        await until_event(t, root, "tool_call")
        await child.asks("half done", expects_reply=False)
        await t.idle(root)
        assert cast.read("root", 1) == [{"reason": "message", "waiting": 1}]
        assert "half done" in cast.heard("root", 1)


@pytest.mark.parametrize("by", ["steer", "person"])
async def test_peers_37_an_interrupt_and_a_person_end_the_wait_too(tmp_path: Path, by: str) -> None:
    cast = Cast(b=[calls(("wait_for_messages", {"timeout_ms": 300_000})), speaks("well")])
    async with troupe(tmp_path, cast, environ=ON) as t:
        root = await t.root()
        b = await t.spawn(root, "b")
        await until_event(t, b.agent_id, "tool_call")
        if by == "steer":
            verb = Verb(kind="steer", by=CLIENT, origin="user", reason="use red")
            await t.agents.interrupt(b.agent_id, verb)
        else:
            await t.say(b.agent_id, "use red", delivery="steer")
        await finished(t, b)
        assert cast.read("b", 1)[0]["reason"] == "message"
        assert "use red" in cast.heard("b")


async def test_peers_37_a_wait_ends_with_its_time_and_looks_only_when_told_so(
    tmp_path: Path,
) -> None:
    cast = Cast(
        root=[
            calls(
                ("wait_for_messages", {"timeout_ms": 0}),
                ("wait_for_messages", {"timeout_ms": 20}),
                ("wait_for_messages", {"timeout_ms": -1}),
            ),
            speaks("nothing"),
        ]
    )
    async with troupe(tmp_path, cast, environ=ON) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        nothing = {"reason": "timeout", "waiting": 0}
        first, second, third = cast.read("root", 1)
        assert (first, second) == (nothing, nothing)
        assert third.startswith("invalid_argument: ")
        assert [status for _, status in results(await t.log(root))] == ["ok", "ok", "error"]


async def test_peers_37_what_is_not_for_a_boundary_yet_is_not_told(tmp_path: Path) -> None:
    async with troupe(tmp_path, environ=ON) as t:
        root = await t.root()
        agent = await finished(t, await t.spawn(root, "one"))

        def inert(tx: Any) -> None:
            envelope = Envelope(
                delivery_id="x",
                content=(TextContent(text="not yet"),),
                author=PERSON,
                kind="information",
            )
            deliveries.deliver(tx, agent.agent_id, envelope, by=CLIENT, host_id=t.host.host_id)

        await t.host.log.transact(inert)
        assert waiting_for(t, agent.agent_id) == [("information", "x")]
        assert (await t.agents.messaging.mail(agent.agent_id, timeout_s=0)).waiting == 0
