"""When a tree of agents has come to rest, and all of it was told."""

from callboard_rpc.common import SessionId
from callboard_rpc.events import (
    AgentClosed,
    AgentInterrupted,
    DeliveriesDropped,
    EventData,
    SessionClosed,
    SessionDeleted,
    TriggersDropped,
    TurnFinished,
    TurnParked,
    UnknownData,
)
from callboard_rpc.streams import Scope

from .agents import Agents
from .api import Events, Sessions
from .stream import EventStream

_BUSY = ("starting", "running")
_STILL = ("idle", "parked", "closed")


async def at_rest(sessions: Sessions, agents: Agents, root_id: SessionId) -> bool:
    """Whether nothing of a tree runs, or is about to: no agent has work, and nothing that an agent has
    said will wake the root. A root whose turn is parked runs nothing."""
    while True:
        before = (await sessions.get(root_id)).session
        if before.status not in _STILL:
            return False
        async for agent in agents.list(root_id):
            if agent.status in _BUSY:
                return False
        if before.status == "idle":
            waited = await sessions.wait(root_id, "idle", timeout_ms=0)
            if waited.reason == "timeout":
                return False
        after = (await sessions.get(root_id)).session
        if after.head_seq == before.head_seq:
            return True
        # a turn in between may have ended some agents, and begun others


async def all_told(history: Events, stream: EventStream, scope: Scope) -> bool:
    """Whether a stream of `scope` has given out everything that has happened by now."""
    if stream.waiting:
        return False
    rest = await history.page(scope, after=stream.cursor, limit=1)
    return not rest.data and not stream.waiting


def may_bring_rest(event: EventData | UnknownData) -> bool:
    """Whether an event can be the one after which a tree rests."""
    return isinstance(
        event,
        TurnFinished
        | TurnParked
        | AgentInterrupted
        | AgentClosed
        | SessionClosed
        | SessionDeleted
        | TriggersDropped
        | DeliveriesDropped,
    )
