"""The agents' tables are what their events say, for any history; emptied and made anew they are the same
(coordination 19, 86)."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import log_agents
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from log_workbench import CLIENT, log_at, tables

from callboard.agents.projection import find
from callboard.agents.state import replay
from callboard.log.log import Log
from callboard.log.transaction import Transaction
from callboard_rpc.events import AgentAsked

AGENTS = ("ses_a", "ses_b", "ses_c")


@define
class History:
    """What happens to a few agents, the second of them a child of the first; the third may be deleted."""

    events: list[tuple[str, Any]] = field(factory=list[tuple[str, Any]])
    count: int = 0

    def new(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count:05}"


@st.composite
def histories(draw: st.DrawFn) -> History:
    history, asks = History(), list[str]()
    for _ in range(draw(st.integers(0, 50))):
        agent_id = draw(st.sampled_from(AGENTS))
        event = draw(log_agents.events(history.new, agent_id, asks))
        if isinstance(event, AgentAsked):
            asks.append(event.ask_id)
        history.events.append((agent_id, event))
    return history


@settings(max_examples=25)
@given(histories(), st.booleans())
def test_coordination_19_86_the_tables_are_what_the_events_say(
    history: History, deletes: bool
) -> None:
    asyncio.run(_plays(history, deletes=deletes))


async def _plays(history: History, *, deletes: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with log_at(Path(folder) / "s.db") as log:
            await log.transact(_begin)
            await log.transact(lambda tx: _append(tx, history))
            if deletes:
                await log.transact(lambda tx: tx.delete_session(AGENTS[2], actor=CLIENT))
            left = AGENTS[:2] if deletes else AGENTS
            for agent_id in left:
                values = [record.value for record in await log.session(agent_id)]
                assert find(log.glance, agent_id) == replay(values)
            assert await _known(log) == sorted(left)
            before = await tables(log)
            await log.rebuild()
            assert await tables(log) == before


def _begin(tx: Transaction) -> None:
    parents = ("ses_root", "ses_a", "ses_root")
    for agent_id, parent in zip(AGENTS, parents, strict=True):
        tx.begin_session(agent_id, "ses_root")
        event = log_agents.spawned(agent_id, "ses_root", parent, agent_id)
        tx.append(agent_id, event, actor=CLIENT)


def _append(tx: Transaction, history: History) -> None:
    for agent_id, event in history.events:
        tx.append(agent_id, event, actor=CLIENT)


async def _known(log: Log) -> list[str]:
    return [row[0] for row in await log.query("SELECT agent_id FROM agents ORDER BY agent_id")]
