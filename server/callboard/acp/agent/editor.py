"""The editor at the other end: who it is, what it can do, and the sessions that it has open."""

import logging
from collections.abc import Callable
from typing import Any

from attrs import define, field

from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author

from ...host import Host
from ...log.record import Record
from ...turns.deltas import Delta
from ..contract import updates
from ..contract.server import ClientCapabilities
from ..peer import Peer
from .conversation import EditorConversation
from .follower import Follower

_log = logging.getLogger(__name__)


@define(eq=False)
class Editor:
    """One client on one host."""

    host: Host
    conversation: EditorConversation
    actor: Actor
    logged_out: bool = False
    _open: dict[str, Follower] = field(factory=dict[str, Follower])
    _stop: list[Callable[[], None]] = field(factory=list[Callable[[], None]])

    @property
    def peer(self) -> Peer:
        return self.conversation.peer

    @property
    def capabilities(self) -> ClientCapabilities:
        return self.conversation.capabilities

    @property
    def author(self) -> Author:
        """The person at the editor."""
        return Author(kind="person", name=self.actor.name or "person", id=self.actor.id)

    def start(self) -> None:
        """Hears what happens from now on, and can be asked."""
        self._stop = [
            self.host.log.listen(self._committed),
            self.host.deltas.listen(self._streamed),
        ]
        self.host.attendance.clients += 1

    def halt(self) -> None:
        """Nothing can be sent any more: what was followed is read no further, since the store may be closed
        before all is tidied up."""
        for follower in self._open.values():
            follower.halt()

    async def leave(self) -> None:
        for stop in self._stop:
            stop()
        self.host.attendance.clients -= 1
        for session_id in list(self._open):
            await self.close(session_id)

    def _committed(self, records: list[Record]) -> None:
        for record in records:
            follower = self._open.get(record.session_id)
            if follower is not None:
                follower.committed(record)

    def _streamed(self, delta: Delta) -> None:
        follower = self._open.get(delta.session_id)
        if follower is not None:
            follower.take(delta)

    # --- sessions ---

    def opened(self, session_id: str) -> Follower | None:
        return self._open.get(session_id)

    def session(self, session_id: str) -> Follower:
        """A session that this client has open. Raises sessionNotFound."""
        follower = self._open.get(session_id)
        if follower is None:
            raise CallboardError(
                "sessionNotFound",
                f"session {session_id[:80]!r} is not open here; begin with session/new, session/load "
                "or session/resume",
            )
        return follower

    def follow(self, follower: Follower) -> None:
        self._open[follower.session_id] = follower
        self.host.opened.note(follower.session_id)

    async def close(self, session_id: str) -> None:
        """Lets a session go; nothing for one that is not open."""
        follower = self._open.get(session_id)
        if follower is not None:
            await self.let_go(follower)

    async def let_go(self, follower: Follower) -> None:
        """Closes one opening of a session; a later one of the same session stays."""
        if self._open.get(follower.session_id) is follower:
            del self._open[follower.session_id]
        await follower.close()

    def covers(self, session_id: str, root_id: str) -> bool:
        """Whether the client is asked what a session asks: it has it, or its root, open."""
        return session_id in self._open or root_id in self._open

    # --- what is sent ---

    def update(self, session_id: str, update: updates.SessionUpdate) -> None:
        self.peer.notify(
            "session/update", updates.SessionNotification(session_id=session_id, update=update)
        )

    def signed_in(self) -> None:
        """Raises authRequired after a logout."""
        if self.logged_out:
            raise CallboardError(
                "authRequired", "this client has logged out; call authenticate before it goes on"
            )


def actor_of(conversation: EditorConversation, client_id: str) -> Actor:
    """The client as the cause of what it asks for."""
    request = conversation.request
    info: Any = None if request is None else request.client_info
    return Actor(kind="client", id=client_id, name=None if info is None else info.name)
