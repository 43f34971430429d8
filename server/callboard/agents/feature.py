"""Child agents, as the host takes them in."""

from collections.abc import Sequence

from callboard_rpc.common import Actor
from callboard_rpc.events import AgentClosed

from ..config import Settings
from ..config.settings import AGENT_INTERRUPTS, AGENT_MESSAGING
from ..features import Feature, Ground
from ..log.transaction import Transaction
from ..sessions.beginning import Opening
from ..tools.base import Tool
from ..turns.finish import Ending
from ..turns.reservation import Grant
from . import asks, interrupts, reports, siblings
from .calling import SERVICE
from .clock import keep_time
from .examining import Caller
from .interrupt_tools import INTERRUPT_TOOLS
from .messaging_tools import MESSAGING_TOOLS
from .projection import PROJECTION, SQL, find
from .service import Agents
from .spawning import Delegation
from .tools import SEVEN

GROUPS = "groups"
"""The feature in which agents own tasks."""


def feature(settings: Settings) -> Feature:
    """The feature under these settings; what seed 004 adds is there only where it is switched on."""

    def ended(tx: Transaction, grant: Grant, ending: Ending) -> None:
        reports.ended(tx, grant, ending, settings.agents)

    def may_begin(tx: Transaction, session_id: str) -> bool:
        agent = find(tx.all, session_id)
        if agent is None:
            return True
        if agent.closing:
            return False  # what waits is dropped with it
        running: int = tx.value(SQL["count_running"], agent.parent_id, session_id)
        ahead: int = tx.value(SQL["count_ahead"], session_id)
        return running + ahead < settings.agents.max_running

    return Feature(
        name=SERVICE,
        tools=_tools(settings.features),
        sources=(interrupts.SOURCE,),
        withholds=() if AGENT_MESSAGING in settings.features else (siblings.KIND,),
        projections=(PROJECTION,),
        openings=(Opening(name=SERVICE, may_begin=may_begin, begun=reports.begun),),
        hooks=(ended, asks.ended),
        closings=(_closed,),
        service=_service,
        recovers=Agents.reconcile,
        works=keep_time,
    )


def _tools(features: Sequence[str]) -> tuple[Tool, ...]:
    return (
        *SEVEN,
        *(INTERRUPT_TOOLS if AGENT_INTERRUPTS in features else ()),
        *(MESSAGING_TOOLS if AGENT_MESSAGING in features else ()),
    )


def _closed(tx: Transaction, session_id: str, by: Actor) -> None:
    agent = find(tx.all, session_id)
    if agent is not None and agent.status != "closed":
        tx.append(session_id, AgentClosed(), actor=by)


def _service(ground: Ground) -> Agents:
    async def delegates(caller: Caller, task_id: str) -> Delegation:
        # tasks are another feature's; whether there is one is known when an agent is to own a task
        return await ground.services[GROUPS].delegation(
            caller.parent_id, task_id, by=caller.by, grant=caller.grant
        )

    return Agents(
        ground.log,
        ground.dispatcher,
        ground.sessions,
        ground.cache,
        catalog=ground.catalog,
        registry=ground.registry,
        profiles=ground.profiles,
        settings=ground.settings,
        model_of=ground.model_of,
        spawn=ground.spawn,
        delegates=delegates,
    )
