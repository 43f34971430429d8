"""A host in a process of its own that does with the inbox what its input says; made to be killed.

A line of input is a JSON list: what to do, and with what. Each is answered with a line. ``idle`` waits
until the session has nothing to do.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import orjson

from callboard.host import Host
from callboard.sessions.inbox.state import Envelope
from callboard_rpc.common import Actor, TextContent
from callboard_rpc.events import Author
from harness.inside import host_in, idle

CHILD = Actor(kind="agent", id="ses_child")


def envelope(text: str) -> Envelope:
    return Envelope(
        delivery_id=f"id of {text}",
        content=(TextContent(text=text),),
        author=Author(kind="agent", name="scout"),
        kind="report",
    )


async def do(host: Host, session_id: str, what: str, *given: Any) -> Any:
    match what:
        case "deliver":
            accepted = await host.inbox.deliver(session_id, envelope(given[0]), by=CHILD)
            return accepted.generation
        case "activate":
            return type(await host.inbox.activate(session_id, given[0])).__name__
        case "send":
            _, activation = await host.inbox.send(session_id, envelope(given[0]), by=CHILD)
            return type(activation).__name__
        case "idle":
            return (await idle(host, session_id)).reason
        case _:
            raise ValueError(what)


async def main(folder: str, session_id: str) -> None:
    loop = asyncio.get_running_loop()
    async with host_in(Path(folder)) as host:
        print(orjson.dumps("here").decode(), flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            answer = await do(host, session_id, *orjson.loads(line))
            print(orjson.dumps(answer).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
