"""What has to be approved, brought to the person as ``session/request_permission``, or as a form."""

import logging
from typing import Any, Final, cast

import orjson

from callboard_rpc.approvals import Approval, ApprovalOption, ApprovalRequestResult, FormSubject
from callboard_rpc.common import Json

from ...host import Host
from ..contract import services
from ..contract import tool_calls as acp
from ..peer import PeerClosed, PeerError
from . import tools
from .editor import Editor
from .follower import Follower

_log = logging.getLogger(__name__)

_KINDS: Final[dict[str, acp.PermissionOptionKind]] = {
    "allow_once": "allow_once",
    "allow_session": "allow_always",
    "allow_always": "allow_always",
    "reject_once": "reject_once",
    "reject_always": "reject_always",
}

_PLAIN: Final = frozenset({"string", "number", "integer", "boolean"})


class Permissions:
    """Asks the person at one editor."""

    def __init__(self, host: Host, editor: Editor) -> None:
        self._host = host
        self._editor = editor

    async def ask(self, approval: Approval) -> ApprovalRequestResult | None:
        """The person's answer; None leaves the approval as it is, for whoever answers it in another way.
        Cancelling this takes the question back."""
        kind = self._kind(approval)
        follower = self._follower(approval)
        while follower is not None and not await follower.announce(approval, kind):
            # it was let go meanwhile, perhaps to be opened again
            gone, follower = follower, self._follower(approval)
            if follower is gone:
                return None
        if follower is None:
            return None
        try:
            if isinstance(approval.subject, FormSubject) and self._shows(approval.subject):
                return await self._form(follower.session_id, approval, approval.subject)
            return await self._permission(follower.session_id, approval, kind)
        except (PeerError, PeerClosed) as error:
            _log.info("approval %s was not answered here: %s", approval.approval_id, error)
            return None

    def _follower(self, approval: Approval) -> Follower | None:
        editor = self._editor
        return editor.opened(approval.session_id) or editor.opened(approval.root_id)

    def _kind(self, approval: Approval) -> acp.ToolKind:
        tool = self._host.registry.get(approval.tool)
        return "other" if tool is None else tool.kind

    def _shows(self, subject: FormSubject) -> bool:
        elicitation = self._editor.capabilities.elicitation
        return elicitation is not None and elicitation.form is not None and is_flat(subject.schema)

    async def _permission(
        self, session_id: str, approval: Approval, kind: acp.ToolKind
    ) -> ApprovalRequestResult | None:
        answer: acp.RequestPermissionResponse = await self._editor.peer.request(
            "session/request_permission",
            acp.RequestPermissionRequest(
                session_id=session_id,
                tool_call=_shown(approval, kind),
                options=tuple(map(_option, approval.options)),
            ),
        )
        match answer.outcome:
            case acp.SelectedPermissionOutcome(option_id=option_id, meta=meta):
                said = (meta or {}).get("feedback")
                return ApprovalRequestResult(
                    option_id=option_id, feedback=said if isinstance(said, str) else None
                )
            case _:
                # nobody has decided: the end of the turn does, or somebody else
                return None

    async def _form(
        self, session_id: str, approval: Approval, subject: FormSubject
    ) -> ApprovalRequestResult | None:
        answer: services.CreateElicitationResponse = await self._editor.peer.request(
            "elicitation/create",
            services.CreateElicitationRequest(
                mode="form",
                message=subject.message,
                requested_schema=subject.schema,
                session_id=session_id,
                tool_call_id=approval.call_id,
            ),
        )
        match answer:
            case services.ElicitationAccepted(content=content):
                given = None if content is None else orjson.dumps(content).decode()
                return _first(approval, "allow", given)
            case services.ElicitationDeclined():
                return _first(approval, "reject", None)
            case _:
                return None


def is_flat(schema: Json) -> bool:
    """Whether a schema is a form as the protocol has them: an object of plain values."""
    fields: Any = schema.get("properties", {})
    return (
        schema.get("type") == "object"
        and isinstance(fields, dict)
        and all(
            isinstance(each, dict) and cast("Json", each).get("type") in _PLAIN
            for each in cast("Json", fields).values()
        )
    )


def _first(approval: Approval, begins: str, feedback: str | None) -> ApprovalRequestResult | None:
    option = next((o for o in approval.options if o.kind.startswith(begins)), None)
    if option is None:
        return None
    return ApprovalRequestResult(option_id=option.option_id, feedback=feedback)


def _option(option: ApprovalOption) -> acp.PermissionOption:
    return acp.PermissionOption(
        option_id=option.option_id, name=option.name, kind=_KINDS.get(option.kind, "reject_once")
    )


def _shown(approval: Approval, kind: acp.ToolKind) -> acp.ToolCallUpdate:
    call = tools.asked(approval, kind)
    return acp.ToolCallUpdate(
        tool_call_id=call.tool_call_id,
        title=call.title,
        name=call.name,
        kind=call.kind,
        status="pending",
        content=call.content,
        raw_input=call.raw_input,
        meta={"callboard": {"approvalId": approval.approval_id, "risk": approval.risk}},
    )
