"""The agents' clock goes at its own pace, whatever lies in the tables; and what is to end is asked to once
(interrupts-and-peers 6)."""

from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from agents_races import tree, verb
from attrs import define, field
from interrupts_kit import held

from callboard.agents import clock as agents_clock
from callboard.agents.clock import keep_time, seconds_until
from callboard.agents.projection import SQL
from callboard.log.clock import is_ours, later
from callboard.log.record import Record
from harness.puppets import Pause, calls, of, pauses, speaks

pytestmark = pytest.mark.anyio

NOW = "2031-05-17T09:30:00.000Z"
GRACE = {"CALLBOARD_AGENTS_CANCEL_GRACE_S": "60"}


@define
class Hand:
    """The server's clock, in the test's hands."""

    at: str = NOW

    def now(self) -> str:
        return self.at


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    hand = Hand()
    monkeypatch.setattr("callboard.host.utc_now", hand.now)
    return hand


# --- the pace -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("due", "wait_s"),
    [
        (None, 30.0),
        ("2031-05-17T09:30:00.000Z", 0.0),
        ("2031-05-17T09:29:59.999Z", 0.0),
        ("2031-05-17T09:30:00.250Z", 0.25),
        ("2031-05-17T09:31:00.000Z", 30.0),
        ("0 never", 0.0),  # the store calls it over
        ("", 0.0),
        ("never", 30.0),
        ("9999-99-99T99:99:99.999Z", 30.0),
        ("2031-05-17T09:30:05.000", 30.0),  # of no zone
        ("2031-05-17T09:30:05.000+02:00", 1.0),  # over, and the store does not call it so
    ],
)
def test_peers_6_whatever_a_row_says_there_is_a_time_to_wait(
    due: str | None, wait_s: float
) -> None:
    assert seconds_until(due, NOW) == pytest.approx(wait_s)


def test_a_time_from_elsewhere_is_ours_only_if_it_sorts_with_ours() -> None:
    assert is_ours(NOW) and is_ours(later(NOW, 0.001))
    for text in (
        "", "0 never", "2031-05-17", "2031-05-17T09:30:00Z", "2031-05-17T09:30:00.000",
        "2031-05-17T09:30:00.000+02:00", "2031-05-17T09:30:00.000+00:00", f"{NOW} ", f" {NOW}",
        "2031-05-17T09:30:00.000000Z", "2031-02-30T09:30:00.000Z", "20310517T093000.000Z",
    ):  # fmt: skip
        assert not is_ours(text), text


class Enough(BaseException):
    """The test has seen what it wanted to."""


@define
class Stuck:
    """Agents of which something is always overdue, and whose clock may look so often."""

    fault: Exception | None = None
    due: str = "0 never"
    rounds: int = 0
    attention: Any = field(init=False)
    deadlines_changed: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.attention = self
        self.deadlines_changed = self

    def clear(self) -> None:
        pass

    def now(self) -> str:
        return NOW

    def next_deadline(self) -> str:
        return self.due

    async def end_overdue(self) -> None:
        self.rounds += 1
        if self.rounds > 3:
            raise Enough
        if self.fault is not None:
            raise self.fault


@pytest.mark.parametrize("fault", [None, ValueError("no time"), RuntimeError("of another kind")])
async def test_peers_6_what_stays_overdue_is_looked_at_again_after_a_second_and_no_sooner(
    monkeypatch: pytest.MonkeyPatch, fault: Exception | None
) -> None:
    slept: list[float] = []

    async def sleeps(delay: float) -> None:
        slept.append(delay)

    monkeypatch.setattr(agents_clock.asyncio, "sleep", sleeps)
    stuck = Stuck(fault=fault)
    with pytest.raises(Enough):
        await keep_time(stuck)  # type: ignore[arg-type]
    assert slept == [1.0] * 3


# --- who does not obey --------------------------------------------------------------------------


def deafen(t: Troupe, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host hears of no cancel: it stands still, or what it runs takes long to die."""

    def hears_nothing(_: Record) -> None:
        return None

    monkeypatch.setattr(t.host.dispatcher, "_cancels", hears_nothing)


def scopes(log: list[Any]) -> list[str]:
    return [wish.scope for wish in of(log, "cancel_requested")]


async def test_peers_6_one_that_does_not_die_is_told_so_once_however_often_the_clock_looks(
    tmp_path: Path, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with troupe(tmp_path, environ=GRACE) as t:
        root = await t.root()
        agent, pause = await held(t, root, speaks("done"))
        deafen(t, monkeypatch)
        await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        hand.at = later(NOW, 60)
        for _ in range(3):
            await t.agents.end_overdue()
        log = await t.log(agent.agent_id)
        assert scopes(log) == ["turn"]
        kinds = [wish.kind for wish in of(log, "agent_interrupt_requested")]
        assert kinds == ["cancel", "abort"]
        now = t.child(root, "one")
        assert now.status == "running" and now.deadline_at is None
        assert t.agents.next_deadline() is None
        pause.open.set()
        await t.ended(agent)
        await tree(t, root)


async def test_peers_6_a_second_abort_is_told_that_it_is_under_way_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent, pause = await held(t, root, speaks("done"))
        deafen(t, monkeypatch)
        for kind in ("abort", "abort", "interrupt"):
            done = await t.agents.interrupt(agent.agent_id, verb(kind))
            assert done.outcome == "aborted"
        for kind in ("steer", "cancel"):
            done = await t.agents.interrupt(agent.agent_id, verb(kind))
            assert done.outcome == "ignored"
        log = await t.log(agent.agent_id)
        assert len(of(log, "agent_interrupt_requested")) == 1 and scopes(log) == ["turn"]
        pause.open.set()
        await t.ended(agent)


async def test_peers_19_that_all_around_it_stops_too_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = Pause()
    cast = Cast(
        top=[calls(("spawn_agent", {"name": "low", "message": "go", "wait": True}))],
        low=[pauses(pause, "never")],
    )
    async with troupe(tmp_path, cast, environ={"CALLBOARD_AGENTS_MAX_DEPTH": "2"}) as t:
        root = await t.root()
        top = await t.spawn(root, "top")
        await pause.came()
        (low,) = t.agents.children(top.agent_id)
        deafen(t, monkeypatch)
        await t.agents.interrupt(low.agent_id, verb("abort"))
        for _ in range(2):
            await t.agents.interrupt(top.agent_id, verb("abort"))
        assert scopes(await t.log(low.agent_id)) == ["turn", "tree"]
        assert scopes(await t.log(top.agent_id)) == ["turn"]
        pause.open.set()
        await t.ended(low)


# --- rows that are wrong ------------------------------------------------------------------------


async def _spoil(t: Troupe, sql: str, *values: Any) -> None:
    await t.host.log.transact(lambda tx: tx.execute(sql, *values))


@pytest.mark.parametrize(
    "spoil",
    ["UPDATE agents SET deadline_at = '0 never', pending = '{' WHERE name = 'bad'",
     "UPDATE agents SET deadline_at = '0 never' WHERE name = 'bad'"],
    ids=["of which nothing can be read", "whose time is none"],
)  # fmt: skip
async def test_peers_6_a_row_that_is_wrong_keeps_up_no_other(
    tmp_path: Path, hand: Hand, spoil: str
) -> None:
    async with troupe(tmp_path, environ=GRACE) as t:
        root = await t.root()
        bad, other = Pause(), Pause()
        t.cast.parts["bad"] = [pauses(bad, "never")]
        t.cast.parts["other"] = [pauses(other, "never")]
        agents = [await t.spawn(root, name) for name in ("bad", "other")]
        await bad.came()
        await other.came()
        for agent in agents:
            await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        await _spoil(t, spoil)
        hand.at = later(NOW, 60)
        await t.agents.end_overdue()
        ended = await t.ended(agents[1])
        assert ended.interrupted is not None and ended.interrupted.origin == "clock"
        await _spoil(t, "UPDATE agents SET pending = NULL WHERE pending = '{'")


async def test_peers_6_what_is_not_there_yet_has_no_deadline(tmp_path: Path) -> None:
    """An import is published piece by piece, and has a head when all of it is there."""
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent = await t.ended(await t.spawn(root, "one"))
        await _spoil(
            t,
            "INSERT INTO agents SELECT 'ses_half', root_id, parent_id, 'half', agent_type, depth_left, "
            "message_allow, 'running', report, interrupted, pending, winding, ?, 0, 1 FROM agents "
            "WHERE agent_id = ?",
            "2001-01-01T00:00:00.000Z",
            agent.agent_id,
        )
        await _spoil(
            t,
            "INSERT INTO asks (ask_id, agent_id, parent_id, text, asked_at, expires_at, expects_reply) "
            "VALUES ('ask_half', 'ses_half', ?, 'well?', ?, '2001-01-01T00:00:00.000Z', 1)",
            root,
            NOW,
        )
        assert t.agents.next_deadline() is None
        await t.agents.end_overdue()
        assert t.host.log.glance("SELECT outcome FROM asks") == [(None,)]
        await _spoil(t, "DELETE FROM agents WHERE agent_id = 'ses_half'")


async def test_the_clock_looks_at_an_index_and_not_at_all_that_was_ever_asked(
    tmp_path: Path,
) -> None:
    wanted: list[tuple[str, tuple[Any, ...], list[str]]] = [
        ("next_deadline", (), ["agents_due", "asks_due"]),
        ("overdue", (NOW,), ["agents_due"]),
        ("overdue_asks", (NOW,), ["asks_due"]),
    ]
    async with troupe(tmp_path) as t:
        for name, values, indexes in wanted:
            rows = t.host.log.glance(f"EXPLAIN QUERY PLAN {SQL[name]}", *values)
            plan = "\n".join(str(row[3]) for row in rows)
            for index in indexes:
                assert index in plan, plan
