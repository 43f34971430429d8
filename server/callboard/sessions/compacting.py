"""Compaction by command: under a preparation reservation, so that no turn runs meanwhile."""

from attrs import frozen

from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author

from ..log.record import Record
from ..turns.lifecycle import blocked
from ..turns.reservation import Reservations
from .compaction import summarise
from .dispatch import Dispatcher
from .runner import Services


@frozen
class Compacting:
    """Summarises idle sessions. Prompts that arrive meanwhile wait, and are answered afterwards."""

    services: Services
    reservations: Reservations
    dispatcher: Dispatcher

    async def compact(
        self, session_id: str, *, by: Actor, instructions: str | None
    ) -> Record | None:
        """The summary's record, or None when there was too little to summarise.

        Raises sessionNotFound, sessionClosed, turnInProgress, leaseLost, hookBlocked, and the model's
        failure; then nothing is written.
        """
        services = self.services
        state = await services.cache.state(session_id)
        if state.closed:
            raise CallboardError(
                "sessionClosed", f"session {session_id} is closed; it needs no summary any more"
            )
        settings = services.settings(state.cwd)
        profile = services.profiles(state.cwd).get(state.profile)
        model = await services.catalog.resolve(
            state.model or profile.model, text_tool_calls=profile.text_tool_calls
        )
        hooks = services.lifecycle.of(settings, session_id=session_id, cwd=state.cwd)
        decision = await hooks.ask("PreCompact", reason="command", instructions=instructions)
        if decision.block is not None:
            raise blocked("PreCompact", decision.block)
        prepared = await self.reservations.prepare(session_id)
        try:
            async with prepared as reservation:
                made = await summarise(
                    log=services.log,
                    model=model,
                    transcript=await services.cache.transcript(session_id),
                    grant=reservation.grant,
                    author=Author(kind="system", name="callboard"),
                    actor=by,
                    reason="command",
                    tools=profile.context_tools or settings.context.tools,
                    window=model.card.context_window or settings.context.window_default,
                    instructions=instructions,
                )
        finally:
            await self.dispatcher.wake(session_id)
        return None if made is None else made.record
