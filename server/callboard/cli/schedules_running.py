"""A schedule that a person fires here: this command's server runs its turn, and the command stays for it."""

import anyio

from callboard_client import Client, EventStream
from callboard_rpc.common import FireId, TurnId
from callboard_rpc.events import Event, ScheduleFired, TurnStarted
from callboard_rpc.schedules import Schedule
from callboard_rpc.streams import Scope

from .asking import Policy
from .exits import Exit
from .interrupts import Interrupts
from .staying import AgentTurn, stay, staying
from .terminal import line, open_console

_BEGINS_WITHIN_S = 5.0
"""How long the turn may take to begin; what takes longer waits for somebody else's."""


async def run_here(
    client: Client, schedule: Schedule, interrupts: Interrupts, *, policy: Policy
) -> Exit:
    """Fires, and follows the turn if it begins here. Raises `RemoteError`."""
    before = (await client.schedules.get(schedule.schedule_id)).cursor
    fire = (await client.schedules.run_now(schedule.schedule_id)).fire
    console = open_console()
    if fire.session_id is None or fire.outcome == "skipped":
        console.print(line(f"nothing was begun: {fire.reason or fire.outcome}"), soft_wrap=True)
        return Exit.FAILED
    session = (await client.sessions.get(fire.session_id)).session
    scope = Scope(kind="tree", id=session.root_id)
    async with client.events(scope, before) as stream:
        begun: TurnStarted | None = None
        with anyio.move_on_after(_BEGINS_WITHIN_S):
            begun = await _begun(stream, fire.fire_id)
        host_id = (await client.server.info()).host_id
        if begun is None or begun.host_id != host_id:
            words = f"it waits in session {fire.session_id}, which is at work"
            if begun is not None:
                words = f"it runs in session {fire.session_id}, in another program"
            console.print(line(words), soft_wrap=True)
            return Exit.OK
        turn = AgentTurn(
            client=client,
            stream=stream,
            agent_id=fire.session_id,
            turn_id=TurnId(begun.turn_id),
        )
        return await stay(
            await staying(client, stream, session.root_id, turn), interrupts, policy=policy
        )


async def _begun(stream: EventStream, fire_id: FireId) -> TurnStarted:
    """The beginning of the turn that answers a fire."""
    seq: int | None = None
    while True:
        item, _ = await stream.receive()
        if not isinstance(item, Event):
            continue
        match item.data:
            case ScheduleFired(fire_id=found) if found == fire_id:
                seq = item.seq
            case TurnStarted() as started if seq is not None and seq in started.trigger.seqs:
                return started
            case _:
                pass
