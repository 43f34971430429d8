"""What an agent may ask of Callboard while it works, and who answers it."""

import logging
from typing import Any, Final, Protocol

from ..contract import server, services, tool_calls
from ..peer import INTERNAL_ERROR, INVALID_PARAMS, Incoming, Served

_log = logging.getLogger(__name__)

NOT_FOUND: Final = -32002


class Refused(Exception):
    """A request of the agent that is refused, with the protocol's code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Desk(Protocol):
    """Who deals with an agent while a turn of its session runs."""

    async def update(self, update: Any, size: int) -> None:
        """Takes an update in, of `size` bytes; waits while there is much."""
        ...

    async def permission(
        self, request: tool_calls.RequestPermissionRequest
    ) -> tool_calls.RequestPermissionResponse: ...

    async def elicit(
        self, request: services.CreateElicitationRequest
    ) -> services.CreateElicitationResponse: ...

    def elicited(self, elicitation_id: str) -> None:
        """What the person was sent to do elsewhere is done."""
        ...

    async def read_file(
        self, request: services.ReadTextFileRequest
    ) -> services.ReadTextFileResponse: ...

    async def write_file(
        self, request: services.WriteTextFileRequest
    ) -> services.WriteTextFileResponse: ...

    async def terminal(self, method: str, request: Any) -> Any: ...


class Conversation(Protocol):
    """The agent whose session this is, and its desk while there is one."""

    hello: server.InitializeResponse
    session_id: str | None
    desk: Desk | None


def served(talk: Conversation) -> Served:
    """What the agent can call."""

    def desk_of(session_id: str | None) -> Desk | None:
        return talk.desk if session_id == talk.session_id else None

    def working(session_id: str) -> Desk:
        desk = desk_of(session_id)
        if desk is None:
            raise Refused(NOT_FOUND, "no turn of this session is under way here")
        return desk

    async def permission(_: Incoming, params: tool_calls.RequestPermissionRequest) -> Any:
        desk = desk_of(params.session_id)
        if desk is None:
            outcome = tool_calls.CancelledPermissionOutcome()
            return tool_calls.RequestPermissionResponse(outcome=outcome)
        return await desk.permission(params)

    async def elicit(_: Incoming, params: services.CreateElicitationRequest) -> Any:
        """Outside of a turn nobody can be asked, and so before there is a session."""
        desk = None if params.session_id is None else desk_of(params.session_id)
        return services.ElicitationCancelled() if desk is None else await desk.elicit(params)

    def elicited(params: services.CompleteElicitationNotification) -> None:
        if talk.desk is not None:
            talk.desk.elicited(params.elicitation_id)

    async def read(_: Incoming, params: services.ReadTextFileRequest) -> Any:
        try:
            return await working(params.session_id).read_file(params)
        except Refused as refused:
            if refused.code == NOT_FOUND and _takes_no_for_a_fault(talk.hello):
                return services.ReadTextFileResponse(content="")
            raise

    async def write(_: Incoming, params: services.WriteTextFileRequest) -> Any:
        return await working(params.session_id).write_file(params)

    async def terminal(incoming: Incoming, params: Any) -> Any:
        return await working(params.session_id).terminal(incoming.method, params)

    terminals = ("create", "output", "wait_for_exit", "kill", "release")
    return Served(
        handlers={
            "session/request_permission": permission,
            "fs/read_text_file": read,
            "fs/write_text_file": write,
            **{f"terminal/{each}": terminal for each in terminals},
            "elicitation/create": elicit,
        },
        heeds={"elicitation/complete": elicited},
        fault=_fault,
    )


def _takes_no_for_a_fault(hello: server.InitializeResponse) -> bool:
    """Gemini CLI cannot tell a file that is not there from a fault, whatever it is answered, and so could
    create none."""
    info = hello.agent_info
    return info is not None and info.name == "gemini-cli"


def _fault(fault: BaseException, method: str) -> dict[str, Any]:
    match fault:
        case Refused():
            return {"code": fault.code, "message": str(fault)}
        case _ if type(fault).__name__ == "StructureError":
            return {"code": INVALID_PARAMS, "message": str(fault)[:2_000]}
        case _:
            _log.error("%s of an agent failed", method, exc_info=fault)
            return {"code": INTERNAL_ERROR, "message": f"{method} failed inside of Callboard"}
