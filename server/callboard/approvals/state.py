"""What an approval is, told from its events alone: asked once, ended once, by the first answer."""

from collections.abc import Iterable
from typing import Any

import attrs

from callboard_rpc.approvals import Approval, ApprovalState, Resolution
from callboard_rpc.events import ApprovalDecision, ApprovalRequest


def state_after(resolution: Resolution) -> ApprovalState:
    """The state that a resolution puts an approval into."""
    match resolution.outcome:
        case "allowed" | "rejected":
            return "resolved"
        case "cancelled":
            return "cancelled"
        case "expired":
            return "expired"


def resolved(approval: Approval, resolution: Resolution) -> Approval:
    """The approval with its end. A second end changes nothing (coordination 70)."""
    if approval.state != "pending":
        return approval
    return attrs.evolve(approval, state=state_after(resolution), resolution=resolution)


def replay(events: Iterable[Any]) -> dict[str, Approval]:
    """Every approval of some event data, by id. The model that the projection is checked against."""
    approvals: dict[str, Approval] = {}
    for event in events:
        match event:
            case ApprovalRequest(approval=approval):
                approvals[approval.approval_id] = approval
            case ApprovalDecision(approval_id=approval_id, resolution=resolution):
                known = approvals.get(approval_id)
                if known is not None:
                    approvals[approval_id] = resolved(known, resolution)
            case _:
                pass
    return approvals
