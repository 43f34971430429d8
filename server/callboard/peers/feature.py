"""Links between sessions, as the host takes them in. Off unless they are switched on: then there is no tool, no
source, no poller, and what lies in the tables stays as it is. A deleted session is out of them in any case."""

from callboard_rpc.common import Actor

from ..config import Settings
from ..config.settings import PEERS
from ..features import Feature, Ground
from ..log.transaction import Projection, Transaction
from . import consent
from .consent import SQL
from .receiving import SOURCE
from .service import Peers
from .tools import PEER, SERVICE


def feature(settings: Settings) -> Feature:
    """The feature under these settings. A host that goes soon wakes nobody."""
    on = PEERS in settings.features
    stays = settings.store.waiting == "take_up"
    return Feature(
        name=SERVICE,
        tools=(PEER,) if on else (),
        sources=(SOURCE,) if on else (),
        projections=(PROJECTION,),
        closings=(_closed,) if on else (),
        service=_service,
        works=Peers.work if on and stays else None,
    )


def _service(ground: Ground) -> Peers:
    return Peers(
        ground.log,
        ground.dispatcher,
        ground.opened,
        settings=ground.settings.peers,
        spawn=ground.spawn,
    )


def _closed(tx: Transaction, session_id: str, by: Actor) -> None:
    consent.leave_all(tx, session_id, by)


def _forget(tx: Transaction, session_id: str) -> None:
    """With a session goes what was on its way to it, the consent of either side, and its invitations
    (interrupts-and-peers 55)."""
    for name in ("forget_inbox", "forget_links", "forget_tokens"):
        tx.execute(SQL[name], session_id)


PROJECTION = Projection(name="peers", tables=(), apply={}, forget=_forget)
"""No table: nothing of it follows the log. It is there to forget deleted sessions."""
