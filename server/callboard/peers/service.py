"""Links of the sessions of one store, as one host serves them. Every change is one transaction, so it makes no
difference which process a session is served by."""

import secrets
from collections.abc import Awaitable, Callable

from attrs import frozen

from callboard_rpc.convert import unstructure
from callboard_rpc.errors import CallboardError
from callboard_rpc.peers import Peer

from ..config.settings import PeerSettings
from ..log.clock import later
from ..log.log import Log
from ..log.text import well_formed
from ..log.transaction import Transaction
from ..sessions.dispatch import Dispatcher
from ..sessions.opened import OpenedSessions
from . import consent, sending
from .consent import INVITATION_S, SQL, Left, Side
from .poller import Poller
from .sending import HOUR_S, Sent

_TOKEN_BYTES = 32
_LONGEST_TOKEN = 200
_DEAD_S = 7 * 86_400
"""How long a message that will never be read lies there, to be looked at."""


@frozen(kw_only=True)
class Invitation:
    """`token` is known to nobody else, and not kept."""

    token: str
    expires_at: str


def _random_token() -> str:
    return secrets.token_urlsafe(_TOKEN_BYTES)


class Peers:
    """`new_token` makes the secrets of invitations."""

    def __init__(
        self,
        log: Log,
        dispatcher: Dispatcher,
        opened: OpenedSessions,
        *,
        settings: PeerSettings,
        spawn: Callable[[Callable[[], Awaitable[None]], str], None],
        new_token: Callable[[], str] = _random_token,
    ) -> None:
        self._log = log
        self._settings = settings
        self._new_token = new_token
        self.poller = Poller(
            log,
            dispatcher,
            opened,
            poll_s=settings.poll_ms / 1000,
            spawn=spawn,
            tidy=self.tidy,
        )

    async def invite(self, side: Side) -> Invitation:
        """See `consent.invite`."""
        token = self._new_token()
        expires_at = await self._log.transact(lambda tx: consent.invite(tx, side, token))
        return Invitation(token=token, expires_at=expires_at)

    async def accept(self, side: Side, token: str) -> Peer:
        """The session that has invited. See `consent.accept`."""
        token = token.strip()[:_LONGEST_TOKEN]

        def commit(tx: Transaction) -> Peer:
            peer = consent.accept(tx, side, token)
            tx.decided(peer=unstructure(peer))
            return peer

        return await self._log.transact(commit)

    async def send(self, side: Side, to: str, text: str) -> Sent:
        """Raises invalidParams, messageTooLong, and what `sending.send` does."""
        clean, to = sending.checked_text(text), well_formed(to)

        def commit(tx: Transaction) -> Sent:
            sent = sending.send(tx, side, to, clean, self._settings)
            tx.decided(message_id=sent.message_id, repeated=sent.repeated, left=sent.left)
            return sent

        return await self._log.transact(commit)

    async def linked(self, session_id: str) -> tuple[Peer, ...]:
        """Raises sessionNotFound, rootOnly."""
        consent.must_be_root(self._log.glance, session_id)
        return consent.peers_of(self._log.glance, session_id)

    async def leave(self, side: Side, peer_id: str) -> Left:
        """See `consent.leave`."""
        peer_id = well_formed(peer_id)

        def commit(tx: Transaction) -> Left:
            left = consent.leave(tx, side, peer_id)
            tx.decided(left=left.left, dropped=left.dropped)
            return left

        return await self._log.transact(commit)

    async def work(self) -> None:
        """Wakes idle sessions, for as long as the host lives."""
        await self.poller.keep()

    async def tidy(self) -> None:
        """Takes out what nobody needs any more. Nothing is claimed, so there is nothing to give back."""
        if not (await self._log.query(SQL["is_tidy"], *_limits(self._log.now())))[0][0]:
            await self._log.transact(lambda tx: tidy(tx, *_limits(tx.now())))


def tidy(tx: Transaction, tokens: str, sent: str, dead: str) -> None:
    """Takes out invitations, sent messages and dead letters from before these times, and rows of sessions that
    are gone."""
    tx.execute(SQL["tidy_tokens"], tokens)
    tx.execute(SQL["tidy_sent"], sent)
    tx.execute(SQL["tidy_inbox"], dead)
    tx.execute(SQL["tidy_links"])


def _limits(now: str) -> tuple[str, str, str]:
    return later(now, -INVITATION_S), later(now, -HOUR_S), later(now, -_DEAD_S)


def must_be_on(*, on: bool) -> None:
    """Raises featureDisabled."""
    if not on:
        raise CallboardError(
            "featureDisabled",
            "sessions cannot be linked here: switch 'peers' on in the setting 'features' "
            "(CALLBOARD_FEATURES=peers)",
        )
