"""Tool calls of one answer: judged before anything runs, then run, each with exactly one result."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import orjson
from attrs import evolve

from callboard_rpc.approvals import (
    AgentStep,
    Approval,
    ApprovalOption,
    Resolution,
    ToolCallSubject,
)
from callboard_rpc.common import Actor, ApprovalId, CallId, SessionId, ToolStatus, TurnId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import ToolCall

from ..approvals.service import Approvals, withdraw
from ..hooks.service import NO_HOOKS, Lifecycle
from ..log.faultpoints import point
from ..log.faults import StaleFence
from ..log.redact import PLACEHOLDER
from ..log.text import redacted, well_formed
from ..log.transaction import Transaction
from ..models.base import ToolOutput
from ..tools.base import Preview, Tool, ToolContext, ToolFailure, ToolOutcome
from ..tools.schema import structure_arguments
from .answer import Requested
from .call import Call, Judge, Settled, Verdict, settled_as
from .lifecycle import objection, remarks
from .looking import look
from .reservation import SYSTEM, Grant, assert_fence

_log = logging.getLogger(__name__)

MAX_CALLS = 256
"""How many calls of one answer may run. Those beyond are in the log like any other, and their results
say so: what an answer asks for is bounded by nothing but the provider."""

BEYOND = f"Not run: at most {MAX_CALLS} calls in one answer; ask for the rest again."
_ASK_ALONE = (
    "Not run: only now can be seen that the person has to be asked about this call. Make it again, by "
    "itself."
)
_CHANGED = (
    "Not run: what this call would do is not what the person was asked about, since the files have "
    "changed meanwhile. Look at them, and make the call again."
)
_NOT_NEEDED = "the call is not run any more"
_NO_ANSWER = "Nobody answered the request for this call in time. Nothing was run."


class Caller:
    """Judges and runs the calls of one turn.

    `look_up` finds a tool that this session may use; `context` makes what a call is given;
    `judge` is policy, and `judge_again` is policy at the moment in which a call would begin, when the mode
    and the rules may be others. `actor` is the agent, for the log, and `path` leads to it from its root, for
    whoever is asked. `asking` is held while a person is asked. `redact` is the log's.
    `output_over` hears of each call that will emit no more. `why_not_asked` says why nobody is asked anything, where
    nobody is. `hooks` are asked before and after each call.
    """

    def __init__(
        self,
        *,
        grant: Grant,
        root_id: str,
        path: tuple[AgentStep, ...],
        actor: Actor,
        look_up: Callable[[str], Tool | None],
        tool_names: Callable[[], list[str]],
        context: Callable[[CallId], ToolContext],
        judge: Judge,
        judge_again: Judge,
        approvals: Approvals,
        transact: Callable[[Callable[[Transaction], None]], Awaitable[None]],
        new_id: Callable[[str], str],
        expires_at: Callable[[], str | None],
        time_limit_s: float,
        redact: Callable[[str], str],
        asking: Callable[[], AbstractContextManager[None]] = nullcontext,
        output_over: Callable[[CallId], None] = lambda _: None,
        why_not_asked: Callable[[], str | None] = lambda: None,
        hooks: Lifecycle = NO_HOOKS,
    ) -> None:
        self._grant = grant
        self._root_id = root_id
        self._path = path
        self._actor = actor
        self._look_up = look_up
        self._tool_names = tool_names
        self._context = context
        self._judge = judge
        self._judge_again = judge_again
        self._approvals = approvals
        self._transact = transact
        self._new_id = new_id
        self._expires_at = expires_at
        self._time_limit_s = time_limit_s
        self._redact = redact
        self._asking = asking
        self._output_over = output_over
        self.why_not_asked = why_not_asked
        self._hooks = hooks

    # --- before anything runs ---

    async def prepare(self, requested: Requested, index: int) -> Call:
        """Parses, previews and judges a call. What is wrong with it becomes its result."""
        request = requested.request
        call = Call(
            call_id=requested.call_id,
            index=index,
            name=redacted(self._redact, request.name)[:128],
            provider_call_id=request.call_id,
        )
        self._parse(call, request.arguments)
        if index >= MAX_CALLS:
            call.fault = BEYOND
            return call
        tool = self._look_up(call.name)
        if tool is None:
            known = ", ".join(self._tool_names())
            call.fault = f"There is no tool {call.name!r}. The tools are: {known or 'none'}."
            return call
        if not await self._examine(call, tool):
            return call
        call.verdict = await self._judge(tool, call.preview)
        if call.verdict.effect == "ask":
            call.approval_id = ApprovalId(self._new_id("apr"))
        return call

    async def _examine(self, call: Call, tool: Tool) -> bool:
        """Reads the arguments and looks at what the call would do. False when it cannot run: then
        `fault` says why."""
        call.tool = tool
        try:
            call.arguments = structure_arguments(
                tool.arguments, call.shown if call.raw is None else call.raw
            )
            call.preview = await look(call, tool, self._context(call.call_id), self._redact)
        except ToolFailure as failure:
            if call.arguments is None or call.index == 0:
                coded = call.arguments is None and tool.invalid_code is not None
                call.fault = f"{tool.invalid_code}: {failure}" if coded else str(failure)
                return False
            # an earlier call of this answer may yet make it possible: show what was asked
            call.unseen = True
            call.preview = Preview(
                title=call.name,
                subject=ToolCallSubject(name=call.name, arguments=call.shown),
                risk="medium",
            )
        except Exception:
            _log.exception("the preview of %s failed", call.name)
            call.fault = f"The tool {call.name} failed inside of Callboard; see the server's log."
            return False
        return True

    async def restore(self, logged: ToolCall) -> Call:
        """A call from the log that has not begun, judged anew; its approval keeps its id."""
        call = Call(
            call_id=logged.call_id,
            index=logged.index,
            name=logged.name,
            provider_call_id=logged.provider_call_id,
            shown=logged.arguments,
            raw=logged.raw_arguments,
            approval_id=logged.approval_id,
        )
        tool = self._look_up(call.name)
        if tool is None:
            call.fault = f"There is no tool {call.name!r} any more."
            return call
        if PLACEHOLDER in orjson.dumps([logged.arguments, logged.raw_arguments]).decode():
            call.fault = (
                "Not run: its arguments held a secret, which is not kept over a restart of the "
                "server. Make the call again."
            )
            return call
        if await self._examine(call, tool):
            call.verdict = await self._judge(tool, call.preview)
            if call.approval_id is not None and not await self._as_asked(call, call.approval_id):
                call.fault = _CHANGED
        return call

    async def _as_asked(self, call: Call, approval_id: ApprovalId) -> bool:
        """Whether the call would still do what the person was shown (execution 48)."""
        assert call.preview is not None
        return await self._approvals.was_about(approval_id, call.preview.subject, call.shown)

    @staticmethod
    def _parse(call: Call, arguments: str) -> None:
        text = well_formed(arguments)
        try:
            value: Any = orjson.loads(text) if text.strip() else {}
        except orjson.JSONDecodeError:
            call.raw = text
            return
        if isinstance(value, dict):
            call.shown = value
        else:
            call.raw = text

    def write(self, tx: Transaction, calls: list[Call], message_id: str) -> None:
        """Commits the calls, and the approvals of those that must ask, in one transaction."""
        for call in calls:
            preview = call.preview
            tx.append(
                self._grant.session_id,
                ToolCall(
                    call_id=call.call_id,
                    message_id=message_id,  # pyright: ignore[reportArgumentType]
                    name=call.name,
                    arguments=call.shown,
                    raw_arguments=call.raw,
                    title=call.title,
                    kind=call.tool.kind if call.tool else "other",
                    effect=call.effect,
                    index=call.index,
                    provider_call_id=call.provider_call_id,
                    locations=preview.locations if preview else (),
                    approval_id=call.approval_id,
                ),
                actor=self._actor,
                turn_id=self._grant.turn_id,
                fence=self._grant.fence,
            )
        for call in calls:
            self.write_question(tx, call)

    def write_question(self, tx: Transaction, call: Call) -> None:
        """Commits what is asked about a call, if anything is. The caller has asserted the fence."""
        if call.approval_id is not None and call.preview is not None:
            self._approvals.ask(
                tx,
                self._approval(tx, call, call.preview),
                actor=self._actor,
                fence=self._grant.fence,
            )

    async def judge(self, call: Call) -> Verdict:
        """Asks policy about a call that was not made of what a model wrote; one that must ask gets the id of its
        question."""
        assert call.tool is not None
        call.verdict = await self._judge(call.tool, call.preview)
        call.approval_id = ApprovalId(self._new_id("apr")) if call.verdict.effect == "ask" else None
        return call.verdict

    def ask_person(self, call: Call, options: tuple[ApprovalOption, ...]) -> None:
        """Makes a call a question to the person, under an id of its own."""
        call.question = True
        call.verdict = Verdict(effect="ask", reason="", options=options)
        call.approval_id = ApprovalId(self._new_id("apr"))

    async def answered(self, call: Call) -> Resolution:
        """The end of what a call asks, once it has one."""
        assert call.approval_id is not None
        with self._asking():
            return await self._approvals.wait(call.approval_id)

    def take_back(self, tx: Transaction, call: Call, reason: str) -> None:
        """Ends what a call asks, if it has no end yet. The caller has asserted the fence."""
        if call.approval_id is not None:
            withdraw(tx, call.approval_id, by=SYSTEM, reason=reason, fence=self._grant.fence)

    async def how_answered(self, call: Call) -> Resolution | None:
        """The answer to what was asked about a call, if it was asked and answered."""
        asked = await self.asked_about(call)
        return None if asked is None else asked.resolution

    async def asked_about(self, call: Call) -> Approval | None:
        """What was asked about a call, if anything was."""
        if call.approval_id is None:
            return None
        return await self._approvals.get(call.approval_id)

    def context(self, call_id: CallId) -> ToolContext:
        """What a tool is given for a call."""
        return self._context(call_id)

    def output_over(self, call_id: CallId) -> None:
        """The call emits no more."""
        self._output_over(call_id)

    def _approval(self, tx: Transaction, call: Call, preview: Preview) -> Approval:
        assert call.approval_id is not None and call.verdict is not None
        return Approval(
            approval_id=call.approval_id,
            session_id=SessionId(self._grant.session_id),
            root_id=SessionId(self._root_id),
            turn_id=TurnId(self._grant.turn_id),
            call_id=call.call_id,
            kind="question" if call.question else "permission",
            title=preview.title,
            tool=call.tool.name if call.tool is not None else call.name,
            subject=preview.subject,
            options=call.verdict.options,
            created_at=tx.now(),
            path=self._path,
            risk=preview.risk,
            reason=call.verdict.reason or None,
            expires_at=self._expires_at(),
        )

    # --- running ---

    async def admit(self, call: Call) -> ToolOutput | None:
        """Waits for permission where it must be asked for; a result when the call must not run."""
        if call.fault is not None:
            return await self._result(call, "error", call.fault)
        verdict = call.verdict or Verdict(effect="deny", reason="it was not judged")
        if verdict.effect == "deny":
            return await self._deny(call, verdict)
        why = await objection(
            self._hooks, call.call_id, call.name, call.shown, call.title, self._actor
        )
        if why is not None:
            return await self._result(call, "denied", why)
        now = await self._by_now(call)
        if call.approval_id is None:
            if now.effect == "ask":
                return await self._result(call, "denied", _ASK_ALONE)
            return None if now.effect != "deny" else await self._deny(call, now)
        if now.effect == "deny":
            return await self._deny(call, now)
        if now.effect == "allow":
            await self._approvals.settle(
                call.approval_id,
                reason=now.reason,
                holds=lambda tx: assert_fence(tx, self._grant),
            )
        with self._asking():
            resolution = await self._approvals.wait(call.approval_id)
        match resolution.outcome:
            case "allowed":
                now = await self._by_now(call)
                return None if now.effect != "deny" else await self._deny(call, now)
            case "expired":
                return await self._result(call, "timed_out", _NO_ANSWER)
            case "rejected" | "cancelled":
                return await self._result(call, "denied", refusal(resolution))

    async def _by_now(self, call: Call) -> Verdict:
        """What holds for a call that is about to begin (coordination 50). Reads change nothing, so
        what was said of them stands."""
        assert call.tool is not None and call.verdict is not None
        if call.effect == "read" and call.approval_id is None:
            return call.verdict
        if call.unseen:
            with suppress(Exception):  # what it says now, its run will say, too
                call.preview = await look(
                    call, call.tool, self._context(call.call_id), self._redact
                )
        return await self._judge_again(call.tool, call.preview)

    async def _deny(self, call: Call, verdict: Verdict) -> ToolOutput:
        return await self._result(call, "denied", f"Denied: {verdict.reason}")

    def reads_freely(self, call: Call) -> bool:
        """Whether a call changes nothing and nobody has to be asked about it: then it may begin before
        it is committed."""
        return (
            call.fault is None
            and call.effect == "read"
            and call.verdict is not None
            and call.verdict.effect == "allow"
            and call.approval_id is None
            and not self._hooks.knows("PreToolUse")
            and not self._hooks.knows("PostToolUse")
        )

    async def run(self, call: Call) -> Settled:
        """Runs a call that may run."""
        started = time.monotonic()
        point("turns.call_begins")
        outcome = await self._run(call)
        point("turns.call_ran")
        elapsed_ms = round((time.monotonic() - started) * 1000)
        settled = settled_as(call, outcome.status, outcome.text, outcome, elapsed_ms)
        return await self._reviewed(settled) if self._hooks.knows("PostToolUse") else settled

    async def _reviewed(self, settled: Settled) -> Settled:
        """A result with what hooks say of it. Whoever stops the turn meanwhile does not lose it."""
        call, result = settled.call, settled.result
        try:
            said = await remarks(
                self._hooks, call.call_id, call.name, call.shown, result.status, result.text
            )
        except asyncio.CancelledError:
            await self.keep(settled)
            raise
        return evolve(settled, result=evolve(result, text=result.text + well_formed(said)))

    async def _run(self, call: Call) -> ToolOutcome:
        """Runs the tool. What it raises becomes its outcome; only what stops the turn goes on."""
        assert call.tool is not None
        waits = call.tool.waits
        limit = None if waits or call.tool.effect == "execute" else self._time_limit_s
        broken = ToolOutcome(
            text=f"The tool {call.name} failed inside of Callboard; see the server's log.",
            status="error",
        )
        scope = asyncio.timeout(limit)
        try:
            async with scope:
                with self._asking() if waits else nullcontext():
                    return await call.tool.run(self._context(call.call_id), call.arguments)
        except ToolFailure as failure:
            return ToolOutcome(text=str(failure), status="error")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # nobody has cancelled it: something inside of the tool was, and the turn goes on
            _log.exception("the tool %s was cancelled from inside", call.name)
            return broken
        except (CallboardError, StaleFence):
            raise
        except (Exception, SystemExit) as fault:
            if isinstance(fault, TimeoutError) and scope.expired():
                return ToolOutcome(
                    text=f"{call.name} took longer than {self._time_limit_s:g} s and was stopped.",
                    status="timed_out",
                )
            _log.exception("the tool %s failed", call.name)
            return broken
        finally:
            self._output_over(call.call_id)

    async def supersede(self, call: Call) -> ToolOutput:
        """The result of a call that was not started because a person said something else meanwhile."""
        return await self._result(
            call,
            "superseded",
            "Not run: the person has written something since. Read it before you go on.",
        )

    async def refuse(self, call: Call, why: str) -> ToolOutput:
        """The result of a call that is not run at all."""
        return await self._result(call, "error", why)

    async def _result(self, call: Call, status: ToolStatus, text: str) -> ToolOutput:
        return await self.keep(settled_as(call, status, text))

    async def keep(self, settled: Settled) -> ToolOutput:
        """Commits the result of a call."""

        def commit(tx: Transaction) -> None:
            assert_fence(tx, self._grant)
            self.write_result(tx, settled)

        await self._transact(commit)
        return settled.output

    def write_result(self, tx: Transaction, settled: Settled) -> None:
        """Writes the result of a call. The caller has asserted the fence."""
        grant, approval_id = self._grant, settled.call.approval_id
        if approval_id is not None:
            withdraw(tx, approval_id, by=SYSTEM, reason=_NOT_NEEDED, fence=grant.fence)
        for event in (*settled.events, settled.result):
            tx.append(
                grant.session_id, event, actor=self._actor, turn_id=grant.turn_id, fence=grant.fence
            )


def refusal(resolution: Resolution) -> str:
    """What the model is told of a rejection."""
    if resolution.outcome == "cancelled":
        return f"Not run: {resolution.reason or 'the request was cancelled'}."
    if resolution.feedback:
        # whoever answered says it, and that need not be a person: a client can answer for one
        return f"Not allowed: {well_formed(resolution.feedback)}"
    return "The person refused this call. Do not try it again in another way; ask, or go on without it."
