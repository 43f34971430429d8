"""What has to be approved, brought to the person as ``session/request_permission``, or as a form."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
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

_PASS_OVER: Final = frozenset({"CodeCompanion.nvim"})
"""Clients that neither show nor answer what they are asked while they wait for no prompt, as after a load."""
_BY_KIND: Final = frozenset({None, "CodeCompanion.nvim"})
"""Clients, by their names, that know an answer by its kind alone, or by an id like the kind's; avante.nvim does not
say its name."""

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
            return await self._permission(follower, approval, kind)
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
        self, follower: Follower, approval: Approval, kind: acp.ToolKind
    ) -> ApprovalRequestResult | None:
        offered = _offered(approval.options, by_kind=self._editor.actor.name in _BY_KIND)
        answer = await self._heard(
            follower,
            acp.RequestPermissionRequest(
                session_id=follower.session_id,
                tool_call=_shown(approval, kind),
                options=tuple(_option(option, shown) for shown, option in offered.items()),
            ),
        )
        match answer.outcome:
            case acp.SelectedPermissionOutcome(option_id=shown, meta=meta):
                said = (meta or {}).get("feedback")
                return ApprovalRequestResult(
                    option_id=offered[shown].option_id if shown in offered else shown,
                    feedback=said if isinstance(said, str) else None,
                )
            case _:
                # nobody has decided: the end of the turn does, or somebody else
                return None

    async def _heard(
        self, follower: Follower, request: acp.RequestPermissionRequest
    ) -> acp.RequestPermissionResponse:
        """The client's answer. A question that it has passed over is taken back when the next prompt comes, and
        asked anew."""

        def asking() -> Awaitable[acp.RequestPermissionResponse]:
            return self._editor.peer.request("session/request_permission", request)

        passes_over = self._editor.actor.name in _PASS_OVER
        while passes_over and not follower.prompts.waits:
            asked = asyncio.ensure_future(asking())
            prompted = asyncio.ensure_future(follower.prompts.next())
            try:
                await asyncio.wait({asked, prompted}, return_when=asyncio.FIRST_COMPLETED)
                if asked.done():
                    return await asked
            finally:
                asked.cancel()
                prompted.cancel()
                await asyncio.wait({asked, prompted})
        return await asking()

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


def _offered(options: Sequence[ApprovalOption], *, by_kind: bool) -> dict[str, ApprovalOption]:
    """The answers, by the ids under which the client is told of them.

    Where answers of one kind look alike those that outlive the session are left out: nobody shall give one
    that was taken for another. What holds for the session has the id of its kind, which avante.nvim goes by.
    """
    if not by_kind:
        return {option.option_id: option for option in options}
    kinds = {option.kind for option in options}
    left_out = {
        lasting
        for lasting, passing in (
            ("allow_always", "allow_session"),
            ("reject_always", "reject_once"),
        )
        if passing in kinds
    }
    return {
        _KINDS[option.kind] if option.kind == "allow_session" else option.option_id: option
        for option in options
        if option.kind not in left_out
    }


def _option(option: ApprovalOption, shown: str) -> acp.PermissionOption:
    return acp.PermissionOption(
        option_id=shown, name=option.name, kind=_KINDS.get(option.kind, "reject_once")
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
