"""Where the person's lifecycle hooks come into a turn: at its start, before its end, around its calls."""

from typing import Any

from callboard_rpc.common import Actor, CallId, MessageId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Ack, Author, Directive

from ..hooks.service import Lifecycle
from ..hooks.state import HookEvent
from ..log.transaction import Transaction
from .reservation import SYSTEM, Grant

MAX_CONTINUATIONS = 3
"""How often the hooks may keep one turn from ending."""

HOOKS = Author(kind="system", name="hooks")


def blocked(event: HookEvent, reason: str) -> CallboardError:
    """The error of something that a hook has kept from being done."""
    return CallboardError(
        "hookBlocked",
        f"a {event} hook of your configuration objected: {reason}",
        data={"event": event},
    )


def instruct(tx: Transaction, grant: Grant, text: str) -> None:
    """Tells the running turn what a hook says: in the log, and in its context from here on. The caller
    has asserted the fence."""
    record = tx.append(
        grant.session_id,
        Directive(message_id=MessageId(tx.new_id("msg")), author=HOOKS, text=text),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
    tx.append(
        grant.session_id,
        Ack(admits=(record.seq,)),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )


async def objection(
    hooks: Lifecycle, call_id: CallId, name: str, arguments: Any, title: str, actor: Actor
) -> str | None:
    """Why a call must not begin, for the model; None when no hook objects (execution 50)."""
    if not hooks.knows("PreToolUse"):
        return None
    decision = await hooks.ask(
        "PreToolUse",
        tool=name,
        callId=call_id,
        arguments=arguments,
        title=title,
        agent=actor.name,
    )
    if decision.block is None:
        return None
    return f"Not run: a hook of the user's configuration blocked this call: {decision.block}"


async def remarks(
    hooks: Lifecycle, call_id: CallId, name: str, arguments: Any, status: str, text: str
) -> str:
    """What hooks have to say of a call that has run, for the model; it has run all the same."""
    decision = await hooks.ask(
        "PostToolUse",
        tool=name,
        callId=call_id,
        arguments=arguments,
        status=status,
        output=text,
    )
    said = [*decision.context, *([] if decision.block is None else [decision.block])]
    return "".join(f"\n\n[a hook of the user's configuration says: {each}]" for each in said)
