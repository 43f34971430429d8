"""What an agent may ask of a client that declares it: files, terminals, forms."""

from typing import Any, Literal, TypeAlias

from callboard_rpc.common import Json
from callboard_rpc.frozen import frozen

from .sessions import EnvVariable


@frozen(kw_only=True)
class ReadTextFileRequest:
    """`path` is absolute, `line` counts from 1, `limit` is a number of lines."""

    session_id: str
    path: str
    line: int | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ReadTextFileResponse:
    content: str
    meta: Json | None = None


@frozen(kw_only=True)
class WriteTextFileRequest:
    session_id: str
    path: str
    content: str
    meta: Json | None = None


@frozen(kw_only=True)
class WriteTextFileResponse:
    meta: Json | None = None


@frozen(kw_only=True)
class CreateTerminalRequest:
    session_id: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[EnvVariable, ...] = ()
    cwd: str | None = None
    output_byte_limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class CreateTerminalResponse:
    terminal_id: str
    meta: Json | None = None


@frozen(kw_only=True)
class TerminalOutputRequest:
    session_id: str
    terminal_id: str
    meta: Json | None = None


@frozen(kw_only=True)
class TerminalExitStatus:
    exit_code: int | None = None
    signal: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class TerminalOutputResponse:
    """`truncated`: the beginning was cut off."""

    output: str
    truncated: bool
    exit_status: TerminalExitStatus | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class WaitForTerminalExitRequest:
    session_id: str
    terminal_id: str
    meta: Json | None = None


@frozen(kw_only=True)
class WaitForTerminalExitResponse:
    exit_code: int | None = None
    signal: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class KillTerminalRequest:
    session_id: str
    terminal_id: str
    meta: Json | None = None


@frozen(kw_only=True)
class KillTerminalResponse:
    meta: Json | None = None


@frozen(kw_only=True)
class ReleaseTerminalRequest:
    session_id: str
    terminal_id: str
    meta: Json | None = None


@frozen(kw_only=True)
class ReleaseTerminalResponse:
    meta: Json | None = None


# --- forms ------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class CreateElicitationRequest:
    """A question for the person. `mode` ``form`` has a `requested_schema` (a flat JSON Schema), ``url`` has
    a `url` to open, whose end is told under `elicitation_id`. It belongs to a session, or to a request."""

    mode: Literal["form", "url"]
    message: str
    session_id: str | None = None
    tool_call_id: str | None = None
    request_id: int | str | None = None
    requested_schema: Json | None = None
    elicitation_id: str | None = None
    url: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ElicitationAccepted:
    action: Literal["accept"] = "accept"
    content: dict[str, Any] | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ElicitationDeclined:
    action: Literal["decline"] = "decline"
    meta: Json | None = None


@frozen(kw_only=True)
class ElicitationCancelled:
    action: Literal["cancel"] = "cancel"
    meta: Json | None = None


CreateElicitationResponse: TypeAlias = (
    ElicitationAccepted | ElicitationDeclined | ElicitationCancelled
)
ELICITATION_ANSWERS: dict[str, type[object]] = {
    "accept": ElicitationAccepted,
    "decline": ElicitationDeclined,
    "cancel": ElicitationCancelled,
}


@frozen(kw_only=True)
class CompleteElicitationNotification:
    elicitation_id: str
    meta: Json | None = None
