"""Who may write to whom: invitations, their acceptance, and leaving. Pieces of transactions
(interrupts-and-peers 4.2).

A link is two consents, one for each direction. They come to be in one transaction with the end of the
invitation, and are gone in one with what was on its way.
"""

import hashlib

from attrs import frozen

from callboard_rpc.common import Actor, MessageId, SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import PeerLinked, PeerUnlinked, TriggersDropped
from callboard_rpc.peers import Peer

from ..log import sqlfile
from ..log.clock import later
from ..log.faults import no_session
from ..log.text import well_formed
from ..log.transaction import Transaction
from ..sessions.reading import refuse_unless_open
from ..turns.boundary import Query
from ..turns.reservation import Grant, assert_fence

SQL = sqlfile.load("callboard.peers")

INVITATION_S = 600
"""How long an invitation can be accepted."""
MAX_INVITATIONS = 10
"""Those of one session that can be accepted at a time."""
MAX_LINKS = 100
"""Sessions that one session may be linked to."""

_WHY_LEFT = "the link to the session that sent it was left"


@frozen(kw_only=True)
class Side:
    """Who acts: a session, by a person or by a run of its own (`grant`)."""

    session_id: str
    by: Actor
    grant: Grant | None = None


@frozen(kw_only=True)
class Left:
    """What leaving came to. `dropped` are messages of either side that nobody will read."""

    left: bool
    dropped: int = 0


def digest_of(text: str) -> str:
    """By what a token, or the text of a message, is known."""
    return hashlib.sha256(well_formed(text).encode()).hexdigest()


# --- who may act --------------------------------------------------------------------------------


def must_be_root(query: Query, session_id: str) -> tuple[bool, bool, str | None]:
    """Whether a session is closed and archived, and its title. Raises sessionNotFound, rootOnly."""
    rows = query(SQL["standing"], session_id)
    if not rows:
        raise no_session(session_id)
    closed, archived, is_root, title = rows[0]
    if not is_root:
        raise CallboardError(
            "rootOnly",
            f"{session_id} is the agent of another session, and only sessions of their own have links; "
            "ask its root",
        )
    return bool(closed), bool(archived), title


def may_act(tx: Transaction, side: Side) -> str | None:
    """First step of every change but leaving; the session's title. Raises `StaleFence` for a run that has
    lost its session, sessionNotFound, sessionClosed, sessionArchived, rootOnly."""
    if side.grant is not None:
        assert_fence(tx, side.grant)
    closed, archived, title = must_be_root(tx.all, side.session_id)
    refuse_unless_open(side.session_id, closed=closed, archived=archived)
    return title


def append(tx: Transaction, side: Side, event: object) -> None:
    """An event in the log of whoever acts."""
    grant = side.grant
    tx.append(
        side.session_id,
        event,
        actor=side.by,
        turn_id=None if grant is None else grant.turn_id,
        fence=0 if grant is None else grant.fence,
    )


# --- inviting, accepting ------------------------------------------------------------------------


def invite(tx: Transaction, side: Side, token: str) -> str:
    """Keeps an invitation by the digest of its token; until when it can be accepted. Raises peerLimit, and
    what `may_act` does."""
    may_act(tx, side)
    now = tx.now()
    expires_at = later(now, INVITATION_S)
    if tx.value(SQL["count_invitations"], side.session_id, now, expires_at) >= MAX_INVITATIONS:
        raise CallboardError(
            "peerLimit",
            f"{MAX_INVITATIONS} invitations of session {side.session_id} are open; have one accepted, or "
            f"wait: each ends after {INVITATION_S // 60} minutes",
        )
    tx.execute(SQL["insert_token"], digest_of(token), side.session_id, now, expires_at)
    return expires_at


def accept(tx: Transaction, side: Side, token: str) -> Peer:
    """Uses an invitation up and links both sessions, all or nothing: of those who try at once one succeeds
    (interrupts-and-peers 38, 41). Raises tokenInvalid, peerLimit, and what `may_act` does."""
    may_act(tx, side)
    digest, now = digest_of(token), tx.now()
    latest = later(now, INVITATION_S)
    taken = tx.all(SQL["take_token"], side.session_id, now, digest, latest)
    if not taken:
        own = tx.one(SQL["own_token"], digest, side.session_id, now, latest)
        raise _not_valid(own=own is not None)
    inviter_id: str = taken[0][0]
    standing = tx.one(SQL["standing"], inviter_id)
    if standing is None or standing[0] or standing[1]:
        raise _not_valid(own=False)  # nobody is there to be linked to
    _link(tx, side, inviter_id, now)
    return peer_of(tx.all, side.session_id, inviter_id)


def _link(tx: Transaction, side: Side, inviter_id: str, now: str) -> None:
    new = tx.execute(SQL["link"], side.session_id, inviter_id, now)
    new += tx.execute(SQL["link"], inviter_id, side.session_id, now)
    if not new:
        return  # they were linked before
    for each in (side.session_id, inviter_id):
        if tx.value(SQL["count_links"], each) > MAX_LINKS:
            raise CallboardError(
                "peerLimit",
                f"session {each} is linked to {MAX_LINKS} others already; leave one of those links first",
            )
    append(tx, side, PeerLinked(peer_id=SessionId(inviter_id)))
    tx.append(inviter_id, PeerLinked(peer_id=SessionId(side.session_id)), actor=side.by)


def _not_valid(*, own: bool) -> CallboardError:
    """One error for a token that nobody has made, one that was used, and one that is too old; the token
    stands in none."""
    if own:
        return CallboardError(
            "tokenInvalid",
            "this session has made that invitation itself; accept it in the session that it is to be linked to",
        )
    return CallboardError(
        "tokenInvalid",
        "this invitation is not valid, was used, or is too old; have a new one made (peer/invite)",
    )


# --- leaving ------------------------------------------------------------------------------------


def leave(tx: Transaction, side: Side, peer_id: str) -> Left:
    """Ends a link for both sides, with all that was on its way between them; nothing, for one that there is
    not. Raises sessionNotFound."""
    must_be_root(tx.all, side.session_id)
    if not tx.execute(SQL["unlink"], side.session_id, peer_id):
        return Left(left=False)
    dropped = 0
    for one, other in ((side.session_id, peer_id), (peer_id, side.session_id)):
        if tx.one(SQL["standing"], one) is None:
            continue
        gone = (*_drop_waiting(tx, one, other), *_drop_pending(tx, one, other, side.by))
        dropped += len(gone)
        tx.append(
            one,
            PeerUnlinked(peer_id=SessionId(other), by=SessionId(side.session_id), dropped=gone),
            actor=side.by,
        )
    return Left(left=True, dropped=dropped)


def _drop_waiting(tx: Transaction, recipient_id: str, sender_id: str) -> tuple[MessageId, ...]:
    rows = tx.all(SQL["drop_waiting"], recipient_id, sender_id)
    ids = tuple(MessageId(each) for each, _ in sorted(rows, key=lambda row: row[1]))
    for message_id in ids:
        tx.execute(SQL["forget_digest"], message_id)
    return ids


def _drop_pending(
    tx: Transaction, session_id: str, peer_id: str, by: Actor
) -> tuple[MessageId, ...]:
    """What has come into the log to begin a turn that has not begun: no agent has read it."""
    rows = tx.all(SQL["pending_of_peer"], session_id, peer_id)
    if not rows:
        return ()
    seqs = tuple(seq for seq, _ in rows)
    tx.append(session_id, TriggersDropped(seqs=seqs, reason=_WHY_LEFT), actor=by)
    return tuple(MessageId(each) for _, each in rows)


def leave_all(tx: Transaction, session_id: str, by: Actor) -> None:
    """A session that is closed for good writes to nobody any more, and nobody to it."""
    side = Side(session_id=session_id, by=by)
    for peer_id, *_ in tx.all(SQL["peers"], session_id):
        leave(tx, side, peer_id)


# --- reading ------------------------------------------------------------------------------------


def peers_of(query: Query, session_id: str) -> tuple[Peer, ...]:
    """Whom a session is linked to, in the order in which it was."""
    return tuple(_peer(row) for row in query(SQL["peers"], session_id))


def peer_of(query: Query, session_id: str, peer_id: str) -> Peer:
    """One of them, that there is."""
    return next(each for each in peers_of(query, session_id) if each.session_id == peer_id)


def _peer(row: tuple[str, str | None, str | None, str | None, int]) -> Peer:
    peer_id, title, outward, inward, waiting = row
    return Peer(
        session_id=SessionId(peer_id),
        title=title,
        since=outward or inward or "",
        waiting=waiting,
        one_way=outward is None or inward is None,
    )
