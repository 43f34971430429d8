"""Who answers the approvals of ``callboard run``, and how."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, TypeAlias

import anyio
from attrs import define, frozen
from rich.console import Console

from callboard_client import Client, PendingApproval
from callboard_rpc.approvals import Approval, ApprovalOption, FileChangeSubject, FormSubject
from callboard_rpc.common import SessionId

from . import cards
from .exits import CommandError, Exit
from .keys import Keyboard
from .present import Presenter
from .terminal import line

Policy: TypeAlias = Literal["ask", "allow", "deny", "rule", "leave"]
"""``ask``: the person at the terminal; without one, deny. ``allow``: once, whatever it is.
``deny``: whatever would be asked. ``rule``: only what standing rules allow, which is never asked;
so whatever is asked is denied. ``leave``: to other clients, whatever it is."""


@frozen
class _Refusal:
    """Why nobody allowed it: `shown` to the person, and what the model is told."""

    shown: str
    told: str


_REFUSALS: dict[Policy, _Refusal] = {
    "ask": _Refusal(
        "not allowed: nobody could be asked, for there is no terminal to ask on "
        "(--approve allow|rule decides it instead)",
        "nobody could be asked, because this run has no terminal. Nobody has looked at this call. "
        "Go on without it, or end and say what you would have done.",
    ),
    "deny": _Refusal(
        "not allowed: --approve deny refuses whatever would be asked",
        "this run refuses whatever a person would have to be asked about. Go on without it.",
    ),
    "rule": _Refusal(
        "not allowed: no standing rule allows it (--approve rule)",
        "no standing rule allows this, and this run asks nobody. Go on without it.",
    ),
}
_A_QUESTION = _Refusal(
    "not answered: a question needs a person to answer it",
    "nobody could be asked: this run answers no questions. Go on with what you know.",
)

_STREAM_WAIT_S = 1.0
"""How long a question waits for what was said before it to be shown. One that is older than this
run never comes by the stream."""


@define(kw_only=True)
class Approver:
    """Answers what the session `root` and its children ask; leaves everything else to others.

    `denied` counts what was refused without a person having said so. `by` names who allowed,
    when nobody was asked. Without a `keyboard` nobody is asked.
    """

    root: SessionId
    policy: Policy
    console: Console
    presenter: Presenter | None
    keyboard: Keyboard | None
    by: str = "--approve allow"
    denied: int = 0

    async def serve(self, client: Client) -> None:
        """Answers one after the other until the client ends."""
        async for pending in client.approval_requests():
            if pending.root_id != self.root or self.policy == "leave":
                pending.defer()
                continue
            if self.presenter is not None:
                with anyio.move_on_after(_STREAM_WAIT_S):
                    await self.presenter.until_requested(pending.approval_id)
            if self.policy == "ask" and self.keyboard is not None:
                await self._until_settled(pending, self.keyboard)
            else:
                self._decide(pending)

    def unechoed(self) -> AbstractContextManager[None]:
        """While it is entered, keys that answer nothing do not show amid what is streamed."""
        if self.keyboard is None or not self.console.is_terminal:
            return nullcontext()
        return self.keyboard.unechoed()

    # --- without a person -------------------------------------------------------------------------

    def _decide(self, pending: PendingApproval) -> None:
        allow = self.policy == "allow" and pending.approval.kind == "permission"
        option = _first(pending.approval, "allow_once" if allow else "reject_once")
        self._show_question(pending.approval)
        if option is None:
            raise CommandError(
                f"approval {pending.approval_id} offers nothing that --approve {self.policy} may choose",
                exit=Exit.DENIED,
                hint="Answer it in another client, or at a terminal with --approve ask.",
            )
        if allow:
            self._answer(pending, option)
            self._say(f"approved by {self.by}", "green")
        else:
            refusal = _REFUSALS.get(self.policy, _A_QUESTION)
            self._answer(pending, option, refusal.told)
            self._say(refusal.shown, "yellow")
            self.denied += 1

    # --- with one -------------------------------------------------------------------------------

    async def _until_settled(self, pending: PendingApproval, keyboard: Keyboard) -> None:
        """Asks; stops asking when another client's answer wins, or the turn is cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_when_withdrawn, pending, tasks.cancel_scope.cancel)
            await self._ask(pending, keyboard)
            tasks.cancel_scope.cancel()

    async def _stop_when_withdrawn(
        self, pending: PendingApproval, stop: Callable[[], None]
    ) -> None:
        if await pending.wait_settled() == "withdrawn":
            self._end_prompt("")
            self._say("no longer asked: it was answered elsewhere, or cancelled", "dim")
            stop()

    async def _ask(self, pending: PendingApproval, keyboard: Keyboard) -> None:
        approval = pending.approval
        with keyboard.single_keys():
            self._show_question(approval)
            for each in cards.options(approval):
                self.console.print(each, soft_wrap=True)
            option = await self._choose(approval, keyboard)
        if option is None:
            pending.defer()
            elsewhere = f"callboard approvals answer {pending.approval_id} OPTION"
            self._say(f"left to other clients ({elsewhere}); Ctrl-C cancels the turn", "yellow")
            return
        feedback = None
        if option.kind.startswith("reject") or isinstance(approval.subject, FormSubject):
            feedback = await self._feedback(approval, keyboard)
        self._answer(pending, option, feedback)

    async def _choose(self, approval: Approval, keyboard: Keyboard) -> ApprovalOption | None:
        count = len(approval.options)
        self._prompt(f"    1-{count}, or d to leave it to other clients: ")
        while True:
            key = await keyboard.key()
            if key is None or key in ("d", "\x1b"):
                self._end_prompt("")
                return None
            if key.isascii() and key.isdigit() and 1 <= int(key) <= count:
                option = approval.options[int(key) - 1]
                self._end_prompt(option.name)
                return option

    async def _feedback(self, approval: Approval, keyboard: Keyboard) -> str | None:
        what = "Your answer" if approval.kind == "question" else "What should it do instead"
        with keyboard.echoed():  # before the question shows, since some type at once
            self._prompt(f"    {what} (Enter for nothing): ")
            typed = await keyboard.line()  # Enter was echoed, and ended the line
        self._mark_line(is_open=False)
        return (typed or "").strip() or None

    def _answer(
        self, pending: PendingApproval, option: ApprovalOption, feedback: str | None = None
    ) -> None:
        if pending.answer(option.option_id, feedback) and self.presenter is not None:
            self.presenter.note_answer(pending.approval_id)
            if option.kind.startswith("reject"):
                self.presenter.note_refusal(pending.approval.call_id)

    # --- showing ----------------------------------------------------------------------------------

    def _show_question(self, approval: Approval) -> None:
        if self.presenter is not None:
            self.presenter.settle()
            if isinstance(approval.subject, FileChangeSubject):
                self.presenter.note_diff(approval.call_id)
        for each in cards.question(approval):
            self.console.print(each, soft_wrap=True)

    def _prompt(self, words: str) -> None:
        self.console.out(words, end="")
        self._mark_line(is_open=True)

    def _end_prompt(self, words: str) -> None:
        if self.presenter is None or self.presenter.open_line:
            self.console.print(line(words))
        self._mark_line(is_open=False)

    def _mark_line(self, *, is_open: bool) -> None:
        if self.presenter is not None:
            self.presenter.open_line = is_open

    def _say(self, words: str, style: str) -> None:
        self.console.print(line((f"    {words}", style)), soft_wrap=True)


def _first(approval: Approval, kind: str) -> ApprovalOption | None:
    """The option of that kind, else one of the same effect."""
    exact = [option for option in approval.options if option.kind == kind]
    effect = kind.partition("_")[0]
    similar = [option for option in approval.options if option.kind.startswith(effect)]
    # Never widen an answer that nobody gave: an "always" is not a substitute for a "once".
    narrow = [option for option in similar if not option.kind.endswith("_always")]
    return next(iter(exact or narrow), None)
