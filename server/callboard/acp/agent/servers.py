"""MCP servers that a client wants an agent to use. They are kept with the session, and not used yet: which is
told, so that nobody waits for their tools. What could be a secret of them is not kept."""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from callboard_rpc.common import Json

from ..contract import sessions as acp
from ..contract import updates
from .story import Story
from .texts import heading

METADATA: Final = "acp/mcpServers"
_MOST: Final = 64


def metadata(given: Sequence[acp.McpServer]) -> Json | None:
    """What a session keeps of them: names and programs, no arguments, values or headers."""
    return {METADATA: [_kept(server) for server in given[:_MOST]]} if given else None


def _kept(server: acp.McpServer) -> Json:
    match server:
        case acp.McpServerStdio(name=name, command=command, env=env):
            return {
                "name": name,
                "type": "stdio",
                "command": command,
                "env": [variable.name for variable in env],
            }
        case _:
            return {
                "name": server.name,
                "type": server.type,
                "host": _host(server.url),
                "headers": [header.name for header in server.headers],
            }


def _host(url: str) -> str | None:
    """Nothing of what is no address."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def told(given: Sequence[acp.McpServer]) -> Json | None:
    """What the answer says of them."""
    if not given:
        return None
    return {
        "callboard": {
            "mcpServers": {"unsupported": [heading(each.name, 80) for each in given[:_MOST]]}
        }
    }


def notices(story: Story, given: Sequence[acp.McpServer]) -> Iterator[updates.SessionUpdate]:
    if given:
        names = ", ".join(server.name for server in given)
        yield from story.notice(
            "warning",
            "MCP servers are not used",
            f"This version of Callboard does not connect to MCP servers: {names}.",
        )
