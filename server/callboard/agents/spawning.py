"""How a child comes to be: the checks, and one transaction for all of it (coordination 14, 15)."""

from collections.abc import Callable

from attrs import frozen

from callboard_rpc.common import Actor, CallId, HostId, MessageId, Mode, SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentSpawned, Author, Directive, SessionCreated

from ..config.settings import AgentSettings
from ..log.faults import no_session
from ..log.text import well_formed
from ..log.transaction import Transaction
from ..sessions.projection import SQL as SESSION_SQL
from ..sessions.reading import refuse_unless_open
from ..turns.reservation import Grant, assert_fence
from .frames import brief_context
from .naming import clean_name, invalid
from .projection import SQL, find

MAX_BRIEF_BYTES = 256 * 1024
MAX_TYPE_CHARS = 64

Delegation = Callable[[Transaction, str], None]
"""Makes the child the owner of a task, in the transaction that makes the child; what it raises leaves
neither (coordination 8.6)."""


@frozen(kw_only=True)
class Spawn:
    """A child to be made, with everything about it decided but what only the transaction can tell.

    `scope` is what it may use (None is everything), `mode` and `model` are pinned. `can_write`: it has the
    tool with which to write to its parent, and to those in `message_allow`. `grant` is the run whose call
    asks for it, if one does: then nothing is made once that run has lost its session.
    """

    parent_id: str
    name: str
    message: str
    parent_name: str
    cwd: str
    directories: tuple[str, ...]
    profile: str
    mode: Mode
    model: str | None
    scope: frozenset[str] | None
    agent_type: str | None = None
    message_allow: tuple[str, ...] = ()
    can_write: bool = False
    call_id: CallId | None = None
    grant: Grant | None = None
    delegation: Delegation | None = None


def checked_brief(message: str) -> str:
    """Raises invalidParams for a blank one, messageTooLarge."""
    text = well_formed(message)
    if not text.strip():
        raise invalid("message", "the agent's message is blank; say what it is to do")
    size = len(text.encode())
    if size > MAX_BRIEF_BYTES:
        raise CallboardError(
            "messageTooLarge",
            f"the message has {size} bytes, more than the {MAX_BRIEF_BYTES} allowed; put the material into "
            "a file of the workspace and name it",
            data={"limit": MAX_BRIEF_BYTES},
        )
    return text


def checked_allow(name: str, allow: tuple[str, ...]) -> tuple[str, ...]:
    """The names of siblings that a child may write to, each once. Raises invalidParams."""
    names = tuple(dict.fromkeys(clean_name(each) for each in allow))
    if name in names:
        raise invalid("messageAllow", f"message_allow names {name!r} itself; leave it out")
    if len(names) > 64:
        raise invalid("messageAllow", "message_allow names more than 64 agents")
    return names


def checked_type(agent_type: str | None) -> str | None:
    """A label for people, on one line; None for a blank one. Raises invalidParams for a long one."""
    text = " ".join(well_formed(agent_type or "").split())
    if len(text) > MAX_TYPE_CHARS:
        raise invalid(
            "agentType", f"agent_type has {len(text)} characters; {MAX_TYPE_CHARS} are allowed"
        )
    return text or None


def spawn(
    tx: Transaction, wanted: Spawn, settings: AgentSettings, *, by: Actor, host_id: str
) -> str:
    """Makes the child with its brief, and returns its id. Nothing of it is there when this raises:
    `StaleFence`, sessionNotFound, sessionClosed, sessionArchived, depthExceeded, nameInUse, limitReached."""
    if wanted.grant is not None:
        assert_fence(tx, wanted.grant)
    flags = tx.one(SESSION_SQL["session_place"], wanted.parent_id)
    if flags is None:
        raise no_session(wanted.parent_id)
    closed, archived, root_id, depth = flags
    refuse_unless_open(wanted.parent_id, closed=bool(closed), archived=bool(archived))
    depth_left = _depth_left(tx, wanted.parent_id, depth, settings)
    _check_room(tx, wanted, settings)
    child_id = tx.new_id("ses")
    tx.begin_session(child_id, root_id)
    tx.append(
        child_id,
        AgentSpawned(
            session=SessionCreated(
                session_id=SessionId(child_id),
                root_id=SessionId(root_id),
                parent_id=SessionId(wanted.parent_id),
                depth=depth + 1,
                cwd=wanted.cwd,
                additional_directories=wanted.directories,
                profile=wanted.profile,
                mode=wanted.mode,
                model=wanted.model,
                title=wanted.name,
                tools=None if wanted.scope is None else tuple(sorted(wanted.scope)),
            ),
            name=wanted.name,
            depth_left=depth_left,
            agent_type=wanted.agent_type,
            message_allow=wanted.message_allow,
            call_id=wanted.call_id,
        ),
        actor=by,
    )
    tx.append(
        child_id,
        Directive(
            message_id=MessageId(tx.new_id("msg")),
            author=author_of(by, wanted.parent_id, wanted.parent_name),
            text=wanted.message,
            context=brief_context(
                wanted.name,
                wanted.parent_name,
                depth_left,
                writes_to=wanted.message_allow if wanted.can_write else None,
            ),
            host_id=HostId(host_id),
        ),
        actor=by,
    )
    if wanted.delegation is not None:
        wanted.delegation(tx, child_id)
    return child_id


def author_of(by: Actor, parent_id: str, parent_name: str) -> Author:
    """Who speaks to a child: its parent agent, or a person in its place."""
    if by.kind == "agent":
        return Author(kind="agent", name=parent_name, id=parent_id)
    return Author(kind="person", name=by.name or "person", id=by.id)


def _depth_left(tx: Transaction, parent_id: str, depth: int, settings: AgentSettings) -> int:
    """How many levels may be below the child: never more than its parent had left, nor than the settings
    allow by now (DESIGN 6)."""
    parent = find(tx.all, parent_id)
    left = settings.max_depth - depth if parent is None else parent.depth_left
    left = min(left, settings.max_depth - depth)
    if left < 1:
        raise CallboardError(
            "depthExceeded",
            f"this agent is at depth {depth}, and no agents can be below it (agents.max_depth): it does the "
            "work itself"
            if depth
            else "this server allows no agents (agents.max_depth is 0)",
        )
    return left - 1


def _check_room(tx: Transaction, wanted: Spawn, settings: AgentSettings) -> None:
    if tx.one(SQL["open_of_name"], wanted.parent_id, wanted.name) is not None:
        raise CallboardError(
            "nameInUse",
            f"there is an open agent {wanted.name!r} already; continue or close it, or use another name",
        )
    count: int = tx.value(SQL["count_open"], wanted.parent_id)
    if count >= settings.max_open:
        raise CallboardError(
            "limitReached",
            f"{count} agents are open, and no more than {settings.max_open} may be (agents.max_open); close "
            "one that is done",
        )
