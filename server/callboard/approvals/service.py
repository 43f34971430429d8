"""Approvals as durable entities: asked in the transaction of the call that waits, answered once.

Answers come from anywhere (a request to a client, ``approval/answer``, a time limit, the end of the
turn); the first that is committed wins, and whoever waits is told by the commit itself. A failure
anywhere leaves the approval unanswered, and an unanswered approval runs nothing.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs
import orjson

from callboard_rpc.approvals import Approval, ApprovalState, Resolution, Rule, RuleScope
from callboard_rpc.common import Actor, Json, RuleId, SessionId
from callboard_rpc.convert import structure, unstructure
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import ApprovalDecision, ApprovalRequest

from ..log import sqlfile
from ..log.log import Log
from ..log.record import Record
from ..log.retrying import delays
from ..log.text import quoted, redacted
from ..log.transaction import Projection, Transaction
from .operation import only_named, same_operation, same_subject
from .state import resolved, state_after

_log = logging.getLogger(__name__)

SQL = sqlfile.load("callboard.approvals")

_MAX_FEEDBACK = 16_000


def _on_request(tx: Transaction, record: Record) -> None:
    approval: Approval = record.value.approval
    tx.execute(
        SQL["insert_approval"],
        approval.approval_id,
        approval.session_id,
        approval.root_id,
        approval.turn_id,
        approval.call_id,
        orjson.dumps(unstructure(approval)).decode(),
        record.pos,
        approval.expires_at,
    )


def _on_decision(tx: Transaction, record: Record) -> None:
    decision: ApprovalDecision = record.value
    tx.execute(
        SQL["resolve_approval"],
        state_after(decision.resolution),
        orjson.dumps(unstructure(decision.resolution)).decode(),
        decision.approval_id,
    )


def _forget(tx: Transaction, session_id: str) -> None:
    tx.execute(SQL["forget_approvals"], session_id)
    tx.execute(SQL["forget_rules"], session_id)


PROJECTION = Projection(
    name="approvals",
    tables=("approvals",),
    apply={"approval_request": _on_request, "approval_decision": _on_decision},
    forget=_forget,
)


def _approval(state: str, request: str, resolution: str | None) -> Approval:
    approval = structure(orjson.loads(request), Approval)
    if resolution is None:
        return attrs.evolve(approval, state=state)
    return resolved(approval, structure(orjson.loads(resolution), Resolution))


def _rule(row: tuple[Any, ...]) -> Rule:
    rule_id, scope, session_id, workspace, tool, pattern, effect, created_at, created_by = row
    return Rule(
        rule_id=rule_id,
        scope=scope,
        session_id=session_id,
        workspace=workspace,
        tool=tool,
        pattern=pattern,
        effect=effect,
        created_at=created_at,
        by=structure(orjson.loads(created_by), Actor),
    )


def decide(
    tx: Transaction, approval_id: str, resolution: Resolution, *, fence: int = 0
) -> Approval | None:
    """Ends a pending approval in a transaction; None when it was not pending any more."""
    row = tx.one(SQL["approval"], approval_id)
    if row is None or row[0] != "pending":
        return None
    approval = _approval(*row[:3])
    tx.append(
        approval.session_id,
        ApprovalDecision(
            approval_id=approval.approval_id, call_id=approval.call_id, resolution=resolution
        ),
        actor=resolution.by,
        turn_id=approval.turn_id,
        fence=fence,
    )
    return resolved(approval, resolution)


def end_of_turn(
    tx: Transaction, turn_id: str, *, by: Actor, via: str, reason: str, fence: int = 0
) -> None:
    """Cancels what a turn still asks; every way in which a turn ends goes through here."""
    for (approval_id,) in tx.all(SQL["pending_of_turn"], turn_id):
        resolution = Resolution(outcome="cancelled", by=by, via=via, at=tx.now(), reason=reason)  # pyright: ignore[reportArgumentType]
        decide(tx, approval_id, resolution, fence=fence)


def waiting_calls(tx: Transaction, turn_id: str) -> frozenset[str]:
    """The calls of a turn that have not begun, because what they ask has no answer yet."""
    return frozenset(call_id for (call_id,) in tx.all(SQL["waiting_calls_of_turn"], turn_id))


def withdraw(tx: Transaction, approval_id: str, *, by: Actor, reason: str, fence: int) -> None:
    """Takes a question back whose call will not run whatever is answered. Nothing when it has ended."""
    resolution = Resolution(outcome="cancelled", by=by, via="cancel", at=tx.now(), reason=reason)
    decide(tx, approval_id, resolution, fence=fence)


async def _nothing() -> None:
    return None


def _unheard(_: str) -> None:
    return None


def revoke(tx: Transaction, rule_ids: Sequence[str]) -> tuple[str, ...]:
    """Takes back those of these rules that were given for their session only; which they were. What
    was given for a workspace stands until it is revoked by itself."""
    return tuple(
        rule_id for each in rule_ids for (rule_id,) in tx.all(SQL["revoke_of_session"], each)
    )


class Approvals:
    """The approvals and rules of one store, and those in this process who wait for an answer.

    `suggest` makes the pattern of the rule that a standing answer creates: it is given the approval,
    the rule's scope and the session's folders, and returns tool and pattern. `before` runs before an
    end of an approval that nobody who runs its turn has asked for: whose server has just died, is
    parked then, and so goes on with the answer.
    """

    def __init__(
        self,
        log: Log,
        *,
        suggest: Callable[[Approval, RuleScope, tuple[str, ...]], tuple[str, str | None]],
        before: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        self._log = log
        self._suggest = suggest
        self._before = before
        self._answered: Callable[[str], None] = _unheard
        self._waiting: dict[str, set[asyncio.Future[Resolution]]] = {}
        log.listen(self._heard)
        log.feed.on_skip(self._look_again)

    def when_answered(self, answered: Callable[[str], None]) -> None:
        """Calls `answered` on the loop with the session of every answer that is given through this process,
        once it is committed, whatever becomes of whoever gave it."""
        self._answered = answered

    def _heard(self, records: list[Record]) -> None:
        for record in records:
            if record.type == "approval_decision":
                decision: ApprovalDecision = record.value
                self._tell(decision.approval_id, decision.resolution)

    def _tell(self, approval_id: str, resolution: Resolution) -> None:
        for future in self._waiting.get(approval_id, ()):
            if not future.done():
                future.set_result(resolution)

    def _look_again(self) -> None:
        """So much was decided elsewhere that it is not told one by one."""
        for approval_id in list(self._waiting):
            with contextlib.suppress(CallboardError):
                for row in self._log.glance(SQL["approval"], approval_id):
                    if row[2] is not None:
                        self._tell(approval_id, structure(orjson.loads(row[2]), Resolution))

    async def wait(self, approval_id: str) -> Resolution:
        """The end of an approval, by whatever process it was answered, before this or later. Cancelling
        the wait decides nothing."""
        future: asyncio.Future[Resolution] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(approval_id, set())
        waiting.add(future)
        try:
            with self._log.feed.followed():
                # listening comes first: what was committed before is in the store, the rest is heard
                return await self._decided_before(approval_id, future) or await future
        finally:
            waiting.discard(future)
            if not waiting and self._waiting.get(approval_id) is waiting:
                del self._waiting[approval_id]

    async def _decided_before(
        self, approval_id: str, heard: "asyncio.Future[Resolution]"
    ) -> Resolution | None:
        """The end of an approval as it is in the store, looked for until that can be read; None when there
        is none yet, or when it is `heard` of first."""
        for delay in delays():
            try:
                rows = await self._log.query(SQL["approval"], approval_id)
            except CallboardError as error:
                _log.warning("approval %s could not be read: %s", approval_id, error)
                await asyncio.wait({heard}, timeout=delay)
                if heard.done():
                    break
                continue
            resolution: str | None = rows[0][2] if rows else None
            return None if resolution is None else structure(orjson.loads(resolution), Resolution)
        return None

    def ask(self, tx: Transaction, approval: Approval, *, actor: Actor, fence: int) -> None:
        """Writes the request; for the transaction that writes the waiting call (DESIGN 5).

        Asked again, it is the request that there is, with its own time limit; asked under the same id
        about something else it is an `idempotencyConflict` (execution 48, 49)."""
        row = tx.one(SQL["approval"], approval.approval_id)
        if row is not None:
            if same_operation(_approval(*row[:3]), approval, redact=tx.writing.redact):
                return
            raise CallboardError(
                "idempotencyConflict",
                f"approval {approval.approval_id} was asked about another call; ask under a new id",
            )
        tx.append(
            approval.session_id,
            ApprovalRequest(approval=approval),
            actor=actor,
            turn_id=approval.turn_id,
            fence=fence,
        )

    async def answer(
        self,
        approval_id: str,
        option_id: str,
        *,
        by: Actor,
        via: str,
        feedback: str | None = None,
    ) -> Approval:
        """Answers, if nobody has yet. Raises approvalNotFound, alreadyResolved (with the resolution),
        approvalExpired, optionInvalid."""
        await self._before()

        def commit(tx: Transaction) -> Approval:
            row = tx.one(SQL["approval"], approval_id)
            if row is None:
                raise CallboardError(
                    "approvalNotFound", f"there is no approval {quoted(approval_id)}"
                )
            approval = _approval(*row[:3])
            if approval.state == "pending" and _is_due(approval, tx.now()):
                return _expire(tx, approval)
            _refuse_unless_pending(approval)
            option = next((o for o in approval.options if o.option_id == option_id), None)
            if option is None:
                known = [o.option_id for o in approval.options]
                raise CallboardError(
                    "optionInvalid",
                    f"approval {approval_id} has no option {quoted(option_id)}; "
                    f"it has {', '.join(known)}",
                    data={"options": known},
                )
            allowed = option.kind.startswith("allow")
            scope: RuleScope | None = None
            if option.kind == "allow_session":
                scope = "session"
            elif option.kind in ("allow_always", "reject_always"):
                scope = "workspace"
            rule_id = (
                None
                if scope is None
                else self._keep_rule(tx, approval, scope, allowed=allowed, by=by)
            )
            resolution = Resolution(
                outcome="allowed" if allowed else "rejected",
                by=by,
                via=via,  # pyright: ignore[reportArgumentType]
                at=tx.now(),
                option_id=option_id,
                # cut when its secrets are gone: nobody would know half of one
                feedback=None
                if feedback is None
                else redacted(tx.writing.redact, feedback)[:_MAX_FEEDBACK],
                rule_id=rule_id,
            )
            decided = decide(tx, approval_id, resolution)
            assert decided is not None
            tx.decided(approval_id=approval_id)
            return decided

        given = self._log.submit(commit)
        given.add_done_callback(self._was_given)
        approval = await asyncio.shield(given)
        if approval.state == "expired":
            _refuse_unless_pending(approval)
        return approval

    def _was_given(self, given: "asyncio.Future[Approval]") -> None:
        if not given.cancelled() and given.exception() is None:
            approval = given.result()
            if approval.state != "expired":  # the answer came too late, and is none
                self._answered(approval.session_id)

    async def was_about(self, approval_id: str, subject: Any, arguments: Json) -> bool:
        """Whether an approval was asked about a call that would do `subject`, or, when that could not
        be seen then, about one with these `arguments`. Raises approvalNotFound."""
        asked = await self.get(approval_id)
        if only_named(asked):
            subject = attrs.evolve(asked.subject, arguments=arguments)
        return same_subject(asked, subject, redact=self._log.redact)

    async def settle(
        self, approval_id: str, *, reason: str, holds: Callable[[Transaction], None]
    ) -> None:
        """Allows by policy what a rule, made since the question was asked, allows. Nothing when it has
        ended already. `holds` raises when the turn that asks is not this process's any more."""

        def commit(tx: Transaction) -> None:
            holds(tx)
            policy = Actor(kind="policy", id="rules")
            resolution = Resolution(
                outcome="allowed", by=policy, via="policy", at=tx.now(), reason=reason
            )
            decide(tx, approval_id, resolution)

        await self._log.transact(commit)

    def _keep_rule(
        self, tx: Transaction, approval: Approval, scope: RuleScope, *, allowed: bool, by: Actor
    ) -> RuleId:
        workspace, more = tx.one(SQL["folders"], approval.session_id) or ("", "[]")
        tool, pattern = self._suggest(approval, scope, (workspace, *orjson.loads(more)))
        rule = Rule(
            rule_id=RuleId(tx.new_id("rule")),
            scope=scope,
            session_id=approval.root_id if scope == "session" else None,
            workspace=workspace if scope == "workspace" else None,
            tool=tool,
            pattern=pattern,
            effect="allow" if allowed else "deny",
            created_at=tx.now(),
            by=by,
        )
        _insert_rule(tx, rule)
        return rule.rule_id

    async def expire_due(self, *, of_host: str | None = None) -> None:
        """Ends, by the server's clock, what was to be answered by now: all of it, or what the turns of
        one host ask."""
        await self._before()

        def expire(tx: Transaction) -> None:
            for row in tx.all(SQL["due"], tx.now(), of_host):
                _expire(tx, _approval(*row))

        await self._log.transact(expire)

    async def next_expiry(self, *, of_host: str | None = None) -> str | None:
        """When the next pending approval expires, if one does; of all, or of those that the turns of one
        host ask."""
        rows = await self._log.query(SQL["next_expiry"], of_host)
        return rows[0][0] if rows else None

    async def get(self, approval_id: str) -> Approval:
        """Raises approvalNotFound."""
        rows = await self._log.query(SQL["approval"], approval_id)
        if not rows:
            raise CallboardError("approvalNotFound", f"there is no approval {quoted(approval_id)}")
        return _approval(*rows[0][:3])

    async def page(
        self,
        *,
        state: ApprovalState | None = None,
        session_id: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> tuple[list[Approval], int | None]:
        """Approvals in the order in which they were asked, of a session and of those below it when
        it is a root; and where the next page begins."""
        rows = await self._log.query(
            SQL["list_approvals"],
            after,
            state,
            state,
            session_id,
            session_id,
            session_id,
            limit + 1,
        )
        page = [_approval(*row[1:]) for row in rows[:limit]]
        return page, (rows[limit - 1][0] if len(rows) > limit else None)

    # --- rules ---

    async def rules_for(self, session_ids: Sequence[str], workspace: str) -> tuple[Rule, ...]:
        """The rules of any of these sessions (one, and those above it), of this folder, and of all."""
        listed = orjson.dumps(list(session_ids)).decode()
        return tuple(_rule(row) for row in self._log.glance(SQL["rules_for"], listed, workspace))

    async def rules(
        self,
        *,
        scope: RuleScope | None = None,
        session_id: SessionId | None = None,
        after: str = "",
        limit: int = 100,
    ) -> tuple[list[Rule], str | None]:
        """Rules, oldest first, and where the next page begins."""
        rows = await self._log.query(
            SQL["rules"], after, scope, scope, session_id, session_id, limit + 1
        )
        page = [_rule(row) for row in rows[:limit]]
        return page, (page[-1].rule_id if len(rows) > limit else None)

    async def add_rule(self, rule: Rule) -> Rule:

        def add(tx: Transaction) -> None:
            _insert_rule(tx, rule)
            tx.decided(rule=unstructure(rule))

        await self._log.transact(add)
        return rule

    async def remove_rule(self, rule_id: str) -> Rule:
        """Revokes a rule from the next decision on. Raises ruleNotFound."""

        def remove(tx: Transaction) -> Rule:
            row = tx.one(SQL["rule"], rule_id)
            if row is None:
                raise CallboardError("ruleNotFound", f"there is no rule {quoted(rule_id)}")
            tx.execute(SQL["delete_rule"], rule_id)
            rule = _rule(row)
            tx.decided(rule=unstructure(rule))
            return rule

        return await self._log.transact(remove)


def _is_due(approval: Approval, now: str) -> bool:
    return approval.expires_at is not None and approval.expires_at <= now


def _expire(tx: Transaction, approval: Approval) -> Approval:
    expired = decide(
        tx,
        approval.approval_id,
        Resolution(
            outcome="expired", by=Actor(kind="system", id="clock"), via="timeout", at=tx.now()
        ),
    )
    return approval if expired is None else expired


def _insert_rule(tx: Transaction, rule: Rule) -> None:
    tx.execute(
        SQL["insert_rule"],
        rule.rule_id,
        rule.scope,
        rule.session_id,
        rule.workspace,
        rule.tool,
        rule.pattern,
        rule.effect,
        rule.created_at,
        orjson.dumps(unstructure(rule.by)).decode(),
    )


def _refuse_unless_pending(approval: Approval) -> None:
    if approval.state == "pending":
        return
    resolution = unstructure(approval.resolution)
    if approval.state == "expired":
        raise CallboardError(
            "approvalExpired",
            f"approval {approval.approval_id} expired unanswered",
            data={"resolution": resolution},
        )
    outcome = approval.resolution.outcome if approval.resolution else approval.state
    raise CallboardError(
        "alreadyResolved",
        f"approval {approval.approval_id} was {outcome} already",
        data={"resolution": resolution},
    )
