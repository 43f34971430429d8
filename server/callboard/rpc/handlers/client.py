"""What one connected client has on the server's side."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

from attrs import frozen

from callboard_rpc.common import Actor

from ...host import Host
from ..call import Call
from ..offers import Offers
from ..subscriptions import Subscriptions


@frozen(kw_only=True)
class ClientState:
    """A client's subscriptions, and the questions that it is asked."""

    subscriptions: Subscriptions
    offers: Offers | None


Held: TypeAlias = Callable[[Call], AbstractContextManager[None]]
"""Holds events back from a client until it has the answer to a call."""


class Clients:
    """The states of the connected clients."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._states: dict[int, ClientState] = {}

    def add(self, key: int, state: ClientState) -> None:
        self._states[key] = state
        self.host.attendance.clients += state.offers is not None

    def of(self, call: Call) -> ClientState:
        return self._states[id(call.connection)]

    def held(self, call: Call) -> AbstractContextManager[None]:
        return self.of(call).subscriptions.held(call)

    def pop(self, key: int) -> ClientState | None:
        state = self._states.pop(key, None)
        if state is not None:
            self.host.attendance.clients -= state.offers is not None
        return state


def actor_of(call: Call) -> Actor:
    """The client as the cause of what it asks for."""
    info = call.client.info
    return Actor(kind="client", id=call.client_id, name=info.name if info else None)
