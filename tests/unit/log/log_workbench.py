"""A log to try things on: opened in a folder of the test, with every projection of the product."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from callboard.agents import projection as agents
from callboard.approvals import service as approvals
from callboard.groups import projection as groups
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.store import open_store
from callboard.log.transaction import Projection, Transaction
from callboard.rooms import projection as rooms
from callboard.sessions import external
from callboard.sessions import projection as sessions
from callboard.sessions.inbox import projection as inbox
from callboard.turns import projection as turns
from callboard_rpc.common import Actor, CallId, MessageId, SessionId, TextContent
from callboard_rpc.events import Author, Directive, Message, SessionCreated, ToolCall, ToolResult

CLIENT = Actor(kind="client", id="tests", name="tester")
AGENT = Actor(kind="agent", id="agent")
PROJECTIONS = (
    turns.PROJECTION,
    approvals.PROJECTION,
    sessions.PROJECTION,
    inbox.PROJECTION,
    external.PROJECTION,
    agents.PROJECTION,
    groups.PROJECTION,
    rooms.PROJECTION,
)


@asynccontextmanager
async def log_at(
    path: Path,
    *,
    redact: Callable[[str], str] = lambda text: text,
    projections: Sequence[Projection] = PROJECTIONS,
    now: Callable[[], str] = utc_now,
) -> AsyncGenerator[Log]:
    """Opening the same path again is a restart."""
    ids = IdSource()
    store = open_store(path, ids=ids, now=now)
    async with Log(store, ids=ids, now=now, redact=redact, projections=projections) as log:
        yield log


def begin(tx: Transaction, session_id: str, *, root_id: str | None = None) -> str:
    """A session with its first event."""
    root = root_id or session_id
    tx.begin_session(session_id, root)
    tx.append(
        session_id,
        SessionCreated(
            session_id=SessionId(session_id),
            root_id=SessionId(root),
            parent_id=None if root_id is None else SessionId(root_id),
            depth=0 if root_id is None else 1,
            cwd="/workspace",
            profile="default",
            mode="work",
        ),
        actor=CLIENT,
    )
    return session_id


async def session_in(log: Log, session_id: str = "ses_a", *, root_id: str | None = None) -> str:
    return await log.transact(lambda tx: begin(tx, session_id, root_id=root_id))


def said(text: str, *, by: str = "person", message_id: str = "msg", **more: Any) -> Message:
    kind: Any = by
    return Message(
        message_id=MessageId(message_id),
        author=Author(kind=kind, name=by),
        content=(TextContent(text=text),),
        **more,
    )


def told(text: str) -> Directive:
    return Directive(message_id=MessageId("msg"), author=Author(kind="agent", name="a"), text=text)


def called(
    call_id: str, message_id: str = "msg", name: str = "shell", **arguments: Any
) -> ToolCall:
    return ToolCall(
        call_id=CallId(call_id),
        message_id=MessageId(message_id),
        name=name,
        arguments=arguments,
        title=name,
    )


def returned(call_id: str, text: str = "done", name: str = "shell", **more: Any) -> ToolResult:
    return ToolResult(
        call_id=CallId(call_id), name=name, text=text, status=more.pop("status", "ok"), **more
    )


async def texts(log: Log, session_id: str) -> list[str]:
    """What was said in a session, in order."""
    return [
        "".join(block.text for block in record.value.content)
        for record in await log.session(session_id)
        if record.type == "message"
    ]


async def tables(log: Log, projections: Sequence[Projection] = PROJECTIONS) -> dict[str, list[Any]]:
    """Every row of every projected table."""
    names = [table for projection in projections for table in projection.tables]
    return {name: sorted(await log.query(f"SELECT * FROM {name}"), key=repr) for name in names}
