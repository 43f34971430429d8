"""Prompts and their cancels: ``session/prompt``, ``session/cancel``, steering."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from callboard_rpc.common import Failure
from callboard_rpc.errors import ERRORS, CallboardError
from callboard_rpc.events import Delivery

from ...host import Host
from ...log.transaction import Transaction
from ...rooms.service import Rooms
from ...rpc.offers import Offers
from ...rpc.pages import invalid
from ...sessions.answering import Addressed, Addressing
from ...sessions.service import Posted
from ...turns.projection import SQL as TURN_SQL
from ..contract import convert
from ..contract import sessions as acp
from ..peer import Incoming
from . import commands
from .blocks import from_prompt
from .editor import Editor
from .follower import Follower
from .story import spoken
from .waiting import Waiting


class Prompting:
    """The prompts of one editor."""

    def __init__(self, host: Host, editor: Editor, rooms: Rooms, offers: Offers) -> None:
        self._host = host
        self._editor = editor
        self._rooms = rooms
        self._offers = offers
        self._cancelling: dict[str, asyncio.Task[None]] = {}
        """The cancel that each session was asked for last, while it is under way."""

    async def prompt(self, incoming: Incoming, params: acp.PromptRequest) -> acp.PromptResponse:
        """Answers last: when everything of the turn was sent that has taken the prompt in."""
        follower = self._editor.session(params.session_id)
        self._editor.signed_in()
        waiting = follower.prompts.add(self._host.log.ids.new("msg"))
        incoming.after_end(waiting.answered.set)
        incoming.on_cancel = lambda: self._call_off(follower, waiting)
        try:
            content = from_prompt(params.prompt)
            await self._cancelled_before(params.session_id)
            if waiting.cancelled:
                return acp.PromptResponse(stop_reason="cancelled")
            command = commands.asked_for(content)
            if command is not None:
                return await self._run_command(follower, waiting, *command)
            posted = await self._post(params, content, waiting.key, _delivery(params.meta))
            self._ask_anew(follower)
            if posted.warning is not None:
                for update in follower.story.notice("warning", posted.warning):
                    await follower.tell(update)
            if posted.outcome == "recorded":
                return acp.PromptResponse(stop_reason="end_turn")
            waiting.seq = posted.record.seq
            if waiting.cancelled:  # it was called off while it was being written down
                await self._stop(follower, waiting)
            outcome = await waiting.outcome
        finally:
            follower.prompts.remove(waiting)
        if isinstance(outcome, Failure):
            raise _failed(outcome)
        return acp.PromptResponse(stop_reason=outcome)

    def _ask_anew(self, follower: Follower) -> None:
        """What is still open is asked again: the prompt waits behind it, and the person may have passed it
        over, or never have seen it."""
        follower.prompts.goes_out()
        session_id = follower.session_id
        self._offers.look(lambda of, root: session_id in (of, root), again=True)

    async def _post(
        self,
        params: acp.PromptRequest,
        content: tuple[Any, ...],
        key: str,
        delivery: Delivery,
        *,
        only_joins: bool = False,
    ) -> Posted:
        """Raises `_NothingRuns` for one that `only_joins` a turn, where there is none."""
        host, author = self._host, self._editor.author
        if only_joins:
            _must_run(host.log.glance(TURN_SQL["owner"], params.session_id))
        content = await host.submitting.asked(
            params.session_id, content, author=author, client_message_id=key
        )
        addressing = self._rooms.addressing(content, None)
        return await host.sessions.prompt(
            params.session_id,
            content,
            author=author,
            by=self._editor.actor,
            delivery=delivery,
            client_message_id=key,
            addressing=_joining(addressing) if only_joins else addressing,
            meta=params.meta,
        )

    async def _run_command(
        self, follower: Follower, waiting: Waiting, command: commands.Command, rest: str
    ) -> acp.PromptResponse:
        """What went wrong is said, too: it is the person who has typed it."""
        waiting.is_command = True
        running = asyncio.ensure_future(
            command.run(self._host, follower.session_id, rest, self._editor.actor)
        )
        try:
            await asyncio.wait({running, waiting.outcome}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.outcome.done():
                return acp.PromptResponse(stop_reason="cancelled")
            said = await running
        except CallboardError as error:
            said = error.message
        finally:
            running.cancel()
        for update in spoken(waiting.key, "answer", said):
            await follower.tell(update)
        return acp.PromptResponse(stop_reason="end_turn")

    async def steer(self, _: Incoming, params: Any) -> Any:
        """``_session/steering``: says something to the turn that runs, and does not wait for its end. The outcome is
        ``injected``; where none runs ``startedNewTurn``, or ``promptRequired`` for a client that would rather
        prompt, and then nothing was written."""
        try:
            request = convert.structure(params, acp.PromptRequest)
        except convert.StructureError as fault:
            raise CallboardError(
                "invalidParams", f"params of _session/steering are wrong: {fault}"
            ) from None
        follower = self._editor.session(request.session_id)
        self._editor.signed_in()
        asks = _asks_when_idle(request.meta)
        content = from_prompt(request.prompt)
        await self._cancelled_before(request.session_id)
        key = self._host.log.ids.new("msg")
        follower.prompts.note_own(key)
        try:
            posted = await self._post(request, content, key, "steer", only_joins=asks)
        except _NothingRuns:
            follower.prompts.forget_own(key)
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        return {"outcome": "injected" if posted.outcome == "steered" else "startedNewTurn"}

    # --- cancelling ---

    def cancel(self, params: acp.CancelNotification) -> None:
        """``session/cancel``: every prompt that came before it ends as cancelled, whether a turn has taken it
        in, or it waits, or it is being written down."""
        # as a task, since prompts that arrived before this have only tasks so far
        session_id = params.session_id
        task = self._editor.conversation.spawn(self._cancel(session_id))
        self._cancelling[session_id] = task

        def over(done: asyncio.Task[None]) -> None:
            if self._cancelling.get(session_id) is done:
                del self._cancelling[session_id]

        task.add_done_callback(over)

    async def _cancel(self, session_id: str) -> None:
        follower = self._editor.opened(session_id)
        if follower is None:
            return
        for waiting in follower.prompts:
            waiting.call_off()
        await self._host.sessions.cancel(
            session_id, by=self._editor.actor, scope="tree", reason="cancelled by the person"
        )

    async def _cancelled_before(self, session_id: str) -> None:
        """A prompt that comes after a cancel is not meant by it."""
        cancelling = self._cancelling.get(session_id)
        if cancelling is not None:
            await asyncio.wait({cancelling})

    def _call_off(self, follower: Follower, waiting: Waiting) -> None:
        """``$/cancel_request`` of a prompt: it alone ends, and answers as cancelled."""
        waiting.call_off()
        self._editor.conversation.spawn(self._stop(follower, waiting))

    async def _stop(self, follower: Follower, waiting: Waiting) -> None:
        """Takes a prompt out of the queue, or ends the turn that has it."""
        session_id, by = follower.session_id, self._editor.actor
        if waiting.seq is None or waiting.outcome.done():
            return  # it is being written down: whoever does that looks again; or it has ended
        try:
            await self._host.queue.remove(session_id, waiting.seq, by=by)
            return
        except CallboardError as error:
            if error.kind != "promptTaken":
                return
        rows = self._host.log.glance(TURN_SQL["trigger"], session_id, waiting.seq)
        try:
            await self._host.sessions.cancel(
                session_id, by=by, turn_id=rows[0][1], reason="cancelled by the person"
            )
        except CallboardError:
            return  # that turn has ended, and the prompt with it


def _delivery(meta: Mapping[str, Any] | None) -> Delivery:
    steer = (meta or {}).get("steer")
    if steer is not None and not isinstance(steer, bool):
        raise invalid("$._meta.steer", "must be true or false")
    return "steer" if steer else "queue"


def _asks_when_idle(meta: Mapping[str, Any] | None) -> bool:
    steering: Any = (meta or {}).get("steering")
    if not isinstance(steering, Mapping):
        return False
    return cast("Mapping[str, Any]", steering).get("idleBehavior") == "promptRequired"


class _NothingRuns(Exception):
    """There is no turn that could take in what is said."""


def _must_run(owners: Sequence[tuple[Any, ...]]) -> None:
    """By the row of a session's owner, if it has one."""
    if not owners or owners[0][1] is None or owners[0][5] == "finalizing":
        raise _NothingRuns


def _joining(addressing: Addressing) -> Addressing:
    """As `addressing` does, of a turn that runs in the very transaction that writes the prompt."""

    def joins(tx: Transaction, session_id: str, running: str | None) -> Addressed:
        _must_run(tx.all(TURN_SQL["owner"], session_id))
        return addressing(tx, session_id, running)

    return joins


def _failed(failure: Failure) -> CallboardError:
    """A turn that failed, as the error of its prompt."""
    kind = failure.kind if failure.kind in ERRORS else "internal"
    return CallboardError(
        kind, failure.message, data={"turn": True}, retry_after_ms=failure.retry_after_ms
    )
