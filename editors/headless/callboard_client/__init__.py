"""An async client of any Callboard server, started as a child process.

    async with Client.start() as client:
        result = await client.run("What is in this folder?", cwd="/some/folder").result()

The types of messages and events are those of `callboard_rpc`.
"""

from .approving import ApprovalRequests, PendingApproval
from .backoff import Backoff
from .client import Client
from .connection import Handler
from .errors import ClientError, ConnectionLost, ProtocolError, RemoteError, StartError
from .options import DEFAULT_COMMAND, ClientOptions
from .rooms import NewRoom
from .run import Run, RunOutcome, RunResult, RunUntil
from .stream import CaughtUp, Delta, EventStream, StreamItem

__all__ = [
    "DEFAULT_COMMAND",
    "ApprovalRequests",
    "Backoff",
    "CaughtUp",
    "Client",
    "ClientError",
    "ClientOptions",
    "ConnectionLost",
    "Delta",
    "EventStream",
    "Handler",
    "NewRoom",
    "PendingApproval",
    "ProtocolError",
    "RemoteError",
    "Run",
    "RunOutcome",
    "RunResult",
    "RunUntil",
    "StartError",
    "StreamItem",
]
