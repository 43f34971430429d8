"""Which of an agent's own answers stands for what was decided here. Pure.

A person is offered Callboard's answers, whose rules can be seen and revoked; the agent is told to do it this once,
whatever it would have remembered. Where the agent offers several things to choose from, those are what is offered.
"""

from collections import Counter
from collections.abc import Sequence

from callboard_rpc.approvals import ApprovalOption

from ...tools.display import one_line
from ..contract.tool_calls import (
    CancelledPermissionOutcome,
    PermissionOption,
    RequestPermissionOutcome,
    RequestPermissionResponse,
    SelectedPermissionOutcome,
)

_ALLOWING = ("allow_once", "allow_always")
_REJECTING = ("reject_once", "reject_always")
_MOST = 50
_LONGEST = 200

CANCELLED = RequestPermissionResponse(outcome=CancelledPermissionOutcome())


def own_options(options: Sequence[PermissionOption]) -> tuple[ApprovalOption, ...]:
    """The agent's own answers, where they are a choice and no yes or no; else none, as where one cannot be named.
    None of them makes a rule."""
    counts = Counter(option.kind for option in options)
    ids = [option.option_id for option in options]
    if len(set(ids)) != len(ids) or max(counts["allow_once"], counts["reject_once"]) < 2:
        return ()
    if any(each != one_line(each, _LONGEST) for each in ids):
        return ()
    return tuple(
        ApprovalOption(
            option_id=option.option_id,
            name=one_line(option.name, _LONGEST) or option.option_id,
            kind="allow_once" if option.kind.startswith("allow") else "reject_once",
        )
        for option in options[:_MOST]
    )


def answer(
    options: Sequence[PermissionOption], *, allowed: bool, chosen: str | None = None
) -> RequestPermissionResponse:
    """What the agent is told. One that offers no way to refuse is told that it was cancelled."""
    known = {option.option_id for option in options}
    if chosen is not None and chosen in known:
        return _selected(chosen)
    for kind in _ALLOWING if allowed else _REJECTING:
        for option in options:
            if option.kind == kind:
                return _selected(option.option_id)
    return CANCELLED


def _selected(option_id: str) -> RequestPermissionResponse:
    outcome: RequestPermissionOutcome = SelectedPermissionOutcome(option_id=option_id)
    return RequestPermissionResponse(outcome=outcome)
