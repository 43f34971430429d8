"""What agents can say to each other, as tools (seed 004, 2 and 3): there only where ``messaging`` is
switched on, and then for every agent, whatever there is around it."""

from attrs import field, frozen

from callboard_rpc.events import AskOutcome

from ..tools.base import ToolContext, ToolFailure, ToolOutcome
from ..tools.schema import describe
from ..turns.kernel_tools import kernel_tool
from .asks import Ask
from .calling import (
    MAX_WAIT_MS,
    WAIT_MS,
    agents_of,
    as_json,
    caller_of,
    grant_of,
    with_codes,
)
from .frames import reply_text
from .mail import MESSAGE_CHARS
from .messaging import WRITES
from .projection import find
from .spawning import author_of

PARENT = "parent"
"""How the parent is called, by all its children; no agent can have that name."""


# --- message ------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Say:
    to: str = field(
        metadata=describe(
            "'parent', or the name of an agent beside you that you may write to.", minLength=1
        )
    )
    text: str = field(
        metadata=describe(
            f"What to say, in at most {MESSAGE_CHARS} characters. The other sees nothing else of what you do.",
            minLength=1,
        )
    )
    expect_reply: bool | None = field(
        default=None,
        metadata=describe(
            "Wait for the reply, which is then the result. Only your parent can be waited for, and it is "
            "unless this is false."
        ),
    )


@with_codes
async def _say(context: ToolContext, arguments: Say) -> ToolOutcome:
    if find(agents_of(context).glance, context.session) is None:
        raise ToolFailure("no_parent: nobody has started you, and nobody is beside you")
    if arguments.to.strip().casefold() == PARENT:
        return await _to_parent(context, arguments.text, arguments.expect_reply is not False)
    sent = await agents_of(context).messaging.send(
        grant_of(context),
        arguments.to,
        arguments.text,
        expects_reply=arguments.expect_reply is True,
    )
    return ToolOutcome(
        text=f"Queued for {sent.recipient.name!r}, which reads it at its next step. There will be no reply "
        "to wait for."
    )


async def _to_parent(context: ToolContext, text: str, expects_reply: bool) -> ToolOutcome:
    asked = await agents_of(context).messaging.ask(
        grant_of(context), text, expects_reply=expects_reply, call_id=context.call_id
    )
    return ToolOutcome(text=_answer(asked) if expects_reply else "Queued for your parent.")


_WITHOUT: dict[AskOutcome, str] = {
    "timed_out": "Your parent has not replied in time.",
    "cancelled": "You need not wait any more: something else was said to you, which you read next.",
    "parent_gone": "Your parent is gone.",
    "parent_restarted": "The server that ran your parent is gone, and nobody will reply.",
}


def _answer(asked: Ask) -> str:
    """How a question ended, as an ordinary result: without a reply the agent goes on by itself."""
    assert asked.outcome is not None
    if asked.outcome == "replied":
        return reply_text(asked.author, asked.reply or "")
    return (
        f"{_WITHOUT[asked.outcome]} Go on without an answer: decide what you can by yourself, and say in "
        "your report what you have assumed."
    )


MESSAGE = kernel_tool(
    WRITES,
    (
        "Ask your parent something that you cannot decide, and get its reply; or let it, or an agent beside "
        "you, know something that it needs before you are done. You can write only a few times: do not "
        "report progress."
    ),
    Say,
    _say,
    lambda a: f"Message to {a.to}: {a.text}",
    waits=True,
)


# --- reply --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Reply:
    ask_id: str = field(metadata=describe("The question's ask_id.", minLength=1))
    text: str = field(
        metadata=describe(f"The answer, in at most {MESSAGE_CHARS} characters.", minLength=1)
    )


@with_codes
async def _reply(context: ToolContext, arguments: Reply) -> ToolOutcome:
    agents, caller = agents_of(context), caller_of(context)
    asked = await agents.reply(
        arguments.ask_id,
        arguments.text,
        author=author_of(
            caller.by, context.session, agents.name_of(context.session, context.profile)
        ),
        by=caller.by,
        grant=caller.grant,
        as_parent=context.session,
    )
    agent = agents.agent(asked.agent_id)
    return ToolOutcome(text=f"{agent.name!r} ({agent.agent_id}) has the reply, and goes on.")


REPLY = kernel_tool(
    "reply",
    "Answer a question of one of your agents, which waits for it.",
    Reply,
    _reply,
    lambda a: f"Reply: {a.text}",
)


# --- wait_for_messages --------------------------------------------------------------------------


@frozen(kw_only=True)
class WaitForMessages:
    timeout_ms: int | None = field(
        default=None,
        metadata=describe(f"Longest wait. Default {WAIT_MS}, at most {MAX_WAIT_MS}; 0 only looks."),
    )


@with_codes
async def _wait(context: ToolContext, arguments: WaitForMessages) -> ToolOutcome:
    timeout_ms = WAIT_MS if arguments.timeout_ms is None else arguments.timeout_ms
    if timeout_ms < 0:
        raise ToolFailure("invalid_argument: timeout_ms must not be negative; 0 only looks")
    mail = await agents_of(context).messaging.mail(context.session, timeout_s=timeout_ms / 1000)
    reason = "message" if mail.waiting else "timeout"
    return ToolOutcome(text=as_json({"reason": reason, "waiting": mail.waiting}))


WAIT_FOR_MESSAGES = kernel_tool(
    "wait_for_messages",
    (
        "Wait until somebody has written to you, or the time is up. It tells only that something waits; you "
        "read it right after."
    ),
    WaitForMessages,
    _wait,
    lambda a: "Wait for messages",
    waits=True,
)

MESSAGING_TOOLS = (MESSAGE, REPLY, WAIT_FOR_MESSAGES)
