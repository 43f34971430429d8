"""``peer/*``: a person links sessions, and writes from one to another."""

from callboard_rpc.common import Json, MessageId
from callboard_rpc.convert import structure
from callboard_rpc.peers import (
    Peer,
    PeerAcceptParams,
    PeerAcceptResult,
    PeerInviteParams,
    PeerInviteResult,
    PeerLeaveParams,
    PeerLeaveResult,
    PeerListParams,
    PeerListResult,
    PeerSendParams,
    PeerSendResult,
)

from ...config.settings import PEERS
from ...host import Host
from ...peers.consent import Side
from ...peers.service import Peers, must_be_on
from ..call import Call, Handler
from .client import actor_of


def peers_of(host: Host) -> Peers:
    service = host.services["peers"]
    assert isinstance(service, Peers)
    return service


def handlers(host: Host) -> dict[str, Handler]:
    peers = peers_of(host)

    def side(call: Call, session_id: str) -> Side:
        """Raises featureDisabled."""
        must_be_on(on=PEERS in host.settings.features)
        return Side(session_id=session_id, by=actor_of(call))

    async def invite(call: Call, params: PeerInviteParams) -> PeerInviteResult:
        invitation = await peers.invite(side(call, params.session_id))
        host.opened.note(params.session_id)
        return PeerInviteResult(token=invitation.token, expires_at=invitation.expires_at)

    async def accept(call: Call, params: PeerAcceptParams) -> PeerAcceptResult:
        peer = await peers.accept(side(call, params.session_id), params.token)
        host.opened.note(params.session_id)
        return PeerAcceptResult(peer=peer, cursor=host.log.cursor())

    async def send(call: Call, params: PeerSendParams) -> PeerSendResult:
        sent = await peers.send(side(call, params.session_id), params.to, params.text)
        host.opened.note(params.session_id)
        return PeerSendResult(
            message_id=sent.message_id,
            repeated=sent.repeated,
            left=sent.left,
            cursor=host.log.cursor(),
        )

    async def list_(_: Call, params: PeerListParams) -> PeerListResult:
        must_be_on(on=PEERS in host.settings.features)
        found = await peers.linked(params.session_id)
        host.opened.note(params.session_id)
        return PeerListResult(peers=found, cursor=host.log.cursor())

    async def leave(call: Call, params: PeerLeaveParams) -> PeerLeaveResult:
        left = await peers.leave(side(call, params.session_id), params.peer_id)
        host.opened.note(params.session_id)
        return PeerLeaveResult(left=left.left, dropped=left.dropped, cursor=host.log.cursor())

    return {
        "peer/invite": invite,
        "peer/accept": accept,
        "peer/send": send,
        "peer/list": list_,
        "peer/leave": leave,
    }


# --- the answers, made once more from what was decided ------------------------------------------------


def accepted(host: Host, outcome: Json) -> PeerAcceptResult:
    return PeerAcceptResult(peer=structure(outcome["peer"], Peer), cursor=host.log.cursor())


def sent(host: Host, outcome: Json) -> PeerSendResult:
    return PeerSendResult(
        message_id=MessageId(outcome["message_id"]),
        repeated=outcome["repeated"],
        left=outcome["left"],
        cursor=host.log.cursor(),
    )


def left(host: Host, outcome: Json) -> PeerLeaveResult:
    return PeerLeaveResult(
        left=outcome["left"], dropped=outcome["dropped"], cursor=host.log.cursor()
    )
