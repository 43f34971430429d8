"""Compaction by command: under a preparation reservation, so that no turn runs meanwhile."""

from attrs import frozen

from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author

from ..log.record import Record
from ..log.transaction import Transaction
from ..turns.lifecycle import blocked
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import Grant, Reservations
from .compaction import NOBODY, summarise
from .dispatch import Dispatcher
from .projection import SQL
from .runner import Services, is_shared, tools_in_context
from .transcript import Transcript


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
        services.log.refresh()
        state = await services.cache.state(session_id)
        if state.closed:
            raise _closed(session_id)
        settings = services.settings(state.cwd)
        agent = state.room.answers() or state.profile
        profile = services.profiles(state.cwd).get(agent)
        if profile.kind != "builtin":
            raise CallboardError(
                "modelUnavailable",
                f"{profile.name!r} is an agent with a context of its own, which it keeps small by itself; "
                "many of them know /compact as a prompt",
            )
        model = await services.catalog.resolve(
            state.model or profile.model, text_tool_calls=profile.text_tool_calls
        )
        hooks = services.lifecycle.of(settings, session_id=session_id, cwd=state.cwd)
        decision = await hooks.ask("PreCompact", reason="command", instructions=instructions)
        if decision.block is not None:
            raise blocked("PreCompact", decision.block)
        prepared = await self.reservations.prepare(
            session_id, _must_be_open, freed=self.dispatcher.look_at
        )
        async with prepared as reservation:
            made = await summarise(
                log=services.log,
                model=model,
                transcript=await self._transcript(session_id, through=reservation.begun),
                grant=reservation.grant,
                author=Author(kind="system", name="callboard"),
                actor=by,
                reason="command",
                tools=tools_in_context(state, profile, settings),
                speaker=NOBODY if is_shared(state) else None,
                window=model.card.context_window or settings.context.window_default,
                instructions=instructions,
            )
        return None if made is None else made.record

    async def _transcript(self, session_id: str, *, through: int) -> Transcript:
        """The transcript of the session as it was taken: nothing that another process has rewound."""
        cache = self.services.cache
        transcript = await cache.transcript(session_id)
        if transcript.seq < through:  # what others had committed could not be read just then
            cache.forget(session_id)
            transcript = await cache.transcript(session_id)
        return transcript


def _must_be_open(tx: Transaction, grant: Grant) -> int:
    """The session's last seq. It may have been closed while the hooks were asked."""
    if tx.value(SQL["flags"], grant.session_id):
        raise _closed(grant.session_id)
    return tx.value(TURN_SQL["last_seq"], grant.session_id)


def _closed(session_id: str) -> CallboardError:
    return CallboardError(
        "sessionClosed", f"session {session_id} is closed; it needs no summary any more"
    )
