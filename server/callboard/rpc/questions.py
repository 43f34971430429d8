"""How a client of Callboard's own protocol is asked: ``approval/request``."""

import logging

from callboard_rpc.approvals import Approval, ApprovalRequestParams, ApprovalRequestResult

from .connection import Connection, ConnectionClosed, PeerError
from .holds import Holds
from .offers import Ask

_log = logging.getLogger(__name__)


def asking(connection: Connection, holds: Holds) -> Ask:
    """Asks over `connection`, once the turn may be named there. There is no time limit: whoever asks ends
    the question when the approval has ended."""

    async def ask(approval: Approval) -> ApprovalRequestResult | None:
        await holds.until_told(approval.turn_id)
        try:
            answer: ApprovalRequestResult = await connection.request(
                "approval/request", ApprovalRequestParams(approval=approval), timeout=None
            )
        except (PeerError, ConnectionClosed) as error:
            _log.info("approval %s was not answered here: %s", approval.approval_id, error)
            return None
        return answer

    return ask
