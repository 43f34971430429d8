"""What the tests of races share: hosts on one store, and what holds when a race is over."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from agents_kit import Cast, Troupe, troupe

from callboard.agents.interrupts import Verb
from callboard.agents.state import replay
from callboard.host import Host
from callboard_rpc.errors import CallboardError
from harness.agent_invariants import check_tree
from harness.inside import CLIENT, PERSON, idle
from harness.invariants import check_session

ORDERS = [
    pytest.param(25, id="some"),
    pytest.param(400, id="many", marks=[pytest.mark.soak, pytest.mark.timeout(1_800)]),
]
"""How many orders of a race are played: always, and when there is time."""
ENOUGH = 20


@asynccontextmanager
async def troupes(
    folder: Path, cast: Cast, count: int, **more: Any
) -> AsyncGenerator[list[Troupe]]:
    """Hosts on one store, as several windows of an editor have them, each of which looks on."""
    async with AsyncExitStack() as stack:
        ts = [await stack.enter_async_context(troupe(folder, cast, **more)) for _ in range(count)]
        for t in ts:
            stack.enter_context(t.host.log.feed.followed())
        yield ts


def verb(kind: Any, reason: str | None = "so I want it", origin: Any = "user") -> Verb:
    return Verb(kind=kind, by=CLIENT, origin=origin, reason=reason)


async def tell(t: Troupe, agent_id: str, text: str, *, goes_on: bool = True) -> Any:
    return await t.agents.send(agent_id, text, goes_on=goes_on, author=PERSON, by=CLIENT)


async def born(t: Troupe, parent_id: str, name: str) -> str:
    """Waits until a child is there; its id."""
    while not (found := [a for a in t.agents.children(parent_id) if a.name == name]):
        await t.host.log.moved(t.host.log.head)
    return found[0].agent_id


async def ended(t: Troupe, agent_id: str, turns: int = 1) -> None:
    """Waits for the end of an agent's so many-th turn."""
    sql = "SELECT count(*) FROM turns WHERE session_id = ? AND ended_at IS NOT NULL"
    while t.host.log.glance(sql, agent_id)[0][0] < turns:
        await t.host.log.moved(t.host.log.head)


async def in_call(t: Troupe, session_id: str, tool: str = "wait_agents") -> None:
    """Until a call of the session runs."""
    sql = "SELECT 1 FROM open_calls WHERE session_id = ? AND name = ?"
    while not t.host.log.glance(sql, session_id, tool):
        await t.host.log.moved(t.host.log.head)


async def wire_log(host: Host, session_id: str) -> list[dict[str, Any]]:
    """A session's log as the wire has it."""
    return [
        {
            "pos": r.pos, "sessionId": r.session_id, "seq": r.seq, "type": r.type,
            "turnId": r.turn_id, "data": orjson.loads(r.data),
        }
        for r in await host.log.session(session_id)
    ]  # fmt: skip


async def tree(t: Troupe, root_id: str) -> dict[str, list[dict[str, Any]]]:
    """The logs of a root and of all below it, checked, once all of them have come to rest."""
    ids = [root_id]
    for each in ids:
        ids += [child.agent_id for child in t.agents.children(each)]
        await _rests(t, each)
    ids = list(dict.fromkeys(ids))
    for each in ids:
        await _rests(t, each)  # a report may have woken one that was idle
    logs = {each: await wire_log(t.host, each) for each in ids}
    for each, log in logs.items():
        check_session(each, log)
    waiting = {
        each: [row[0] for row in t.host.log.glance(
            "SELECT delivery_id FROM inbox WHERE session_id = ?", each)]
        for each in ids
    }  # fmt: skip
    check_tree(logs, waiting)
    for each in ids:
        for child in t.agents.children(each):
            assert replay([r.value for r in await t.log(child.agent_id)]) == child
    return logs


async def _rests(t: Troupe, session_id: str) -> None:
    assert (await idle(t.host, session_id)).reason in ("idle", "closed")


def taken_in(log: list[dict[str, Any]]) -> list[str]:
    """The brief, the directives and the messages of a session, in the order in which it read them."""
    texts = {
        e["seq"]: e["data"]["text"] if e["type"] == "directive" else e["data"]["content"][0]["text"]
        for e in log
        if e["type"] in ("directive", "message") and _said_from_outside(e)
    }
    admitted = [seq for e in log if e["type"] == "ack" for seq in e["data"]["admits"]]
    return [texts[seq] for seq in admitted]


def _said_from_outside(event: dict[str, Any]) -> bool:
    data = event["data"]
    return bool(data.get("delivered")) or data["author"]["kind"] != "agent" or "text" in data


def count(log: list[dict[str, Any]], *kinds: str) -> int:
    return sum(e["type"] in kinds for e in log)


def refused(outcomes: list[Any]) -> list[str]:
    """The kinds of the errors among outcomes; anything else that was raised is a fault."""
    kinds: list[str] = []
    for outcome in outcomes:
        if isinstance(outcome, CallboardError):
            kinds.append(outcome.kind)
        elif isinstance(outcome, BaseException):
            raise outcome
    return kinds
