"""What the tests of the inbox share: a child that sends, and a look at what became of it."""

from typing import Any

from turns_kit import Stage, of

from callboard.sessions.inbox.state import Envelope, Policy
from callboard_rpc.common import Actor, TextContent
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author

CHILD = Actor(kind="agent", id="ses_child", name="scout")


def envelope(
    text: str, delivery_id: str | None = None, policy: Policy = "respect_wait"
) -> Envelope:
    return Envelope(
        delivery_id=delivery_id or f"id of {text}",
        content=(TextContent(text=text),),
        author=Author(kind="agent", name="scout", id="ses_child"),
        kind="report",
        policy=policy,
    )


async def deliver(on: Stage, session_id: str, text: str, **more: Any) -> int:
    accepted = await on.host.inbox.deliver(session_id, envelope(text, **more), by=CHILD)
    return accepted.generation


async def send(on: Stage, session_id: str, text: str, **more: Any) -> Any:
    _, activation = await on.host.inbox.send(session_id, envelope(text, **more), by=CHILD)
    return activation


def received(records: list[Any]) -> list[str]:
    """The deliveries in the history, in order; each is context, by an ack of the same turn."""
    admitted = {seq: r.turn_id for r in records if r.type == "ack" for seq in r.value.admits}
    out: list[str] = []
    for record in records:
        if record.type == "message" and record.value.delivered is not None:
            assert admitted[record.seq] == record.turn_id
            out.append(record.value.content[0].text)
    return out


def started(records: list[Any]) -> list[str]:
    return [each.trigger.kind for each in of(records, "turn_started")]


async def left(on: Stage, session_id: str) -> list[str]:
    """What is in the inbox still."""
    rows = await on.host.log.query(
        "SELECT json_extract(body, '$.content[0].text') FROM inbox WHERE session_id = ? "
        "ORDER BY generation",
        session_id,
    )
    return [text for (text,) in rows]


async def broken(on: Stage) -> None:
    """From here on no turn can be built, so that none comes to its first boundary."""

    async def resolve(*_: Any, **__: Any) -> Any:
        raise CallboardError("modelUnavailable", "the model is gone")

    on.host.catalog.resolve = resolve  # type: ignore[method-assign]
