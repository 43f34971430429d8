"""The table of methods: who may call each, and what it takes and gives."""

from typing import Any, Literal, TypeAlias

from attrs import frozen

from . import server, services, sessions, tool_calls, updates

Side: TypeAlias = Literal["agent", "client"]


@frozen(kw_only=True)
class Method:
    """`side` is who answers it. `result` None: a notification."""

    side: Side
    params: type[Any]
    result: Any = None


def _agent(params: type[Any], result: type[Any] | None = None) -> Method:
    return Method(side="agent", params=params, result=result)


def _client(params: type[Any], result: Any = None) -> Method:
    return Method(side="client", params=params, result=result)


METHODS: dict[str, Method] = {
    "initialize": _agent(server.InitializeRequest, server.InitializeResponse),
    "authenticate": _agent(server.AuthenticateRequest, server.AuthenticateResponse),
    "logout": _agent(server.LogoutRequest, server.LogoutResponse),
    "session/new": _agent(sessions.NewSessionRequest, sessions.NewSessionResponse),
    "session/load": _agent(sessions.LoadSessionRequest, sessions.LoadSessionResponse),
    "session/resume": _agent(sessions.ResumeSessionRequest, sessions.ResumeSessionResponse),
    "session/list": _agent(sessions.ListSessionsRequest, sessions.ListSessionsResponse),
    "session/delete": _agent(sessions.DeleteSessionRequest, sessions.DeleteSessionResponse),
    "session/close": _agent(sessions.CloseSessionRequest, sessions.CloseSessionResponse),
    "session/set_mode": _agent(sessions.SetSessionModeRequest, sessions.SetSessionModeResponse),
    "session/set_config_option": _agent(
        sessions.SetSessionConfigOptionRequest, sessions.SetSessionConfigOptionResponse
    ),
    "session/prompt": _agent(sessions.PromptRequest, sessions.PromptResponse),
    "session/cancel": _agent(sessions.CancelNotification),
    "session/update": _client(updates.SessionNotification),
    "session/request_permission": _client(
        tool_calls.RequestPermissionRequest, tool_calls.RequestPermissionResponse
    ),
    "fs/read_text_file": _client(services.ReadTextFileRequest, services.ReadTextFileResponse),
    "fs/write_text_file": _client(services.WriteTextFileRequest, services.WriteTextFileResponse),
    "terminal/create": _client(services.CreateTerminalRequest, services.CreateTerminalResponse),
    "terminal/output": _client(services.TerminalOutputRequest, services.TerminalOutputResponse),
    "terminal/wait_for_exit": _client(
        services.WaitForTerminalExitRequest, services.WaitForTerminalExitResponse
    ),
    "terminal/kill": _client(services.KillTerminalRequest, services.KillTerminalResponse),
    "terminal/release": _client(services.ReleaseTerminalRequest, services.ReleaseTerminalResponse),
    "elicitation/create": _client(
        services.CreateElicitationRequest, services.CreateElicitationResponse
    ),
    "elicitation/complete": _client(services.CompleteElicitationNotification),
}
CANCEL_REQUEST = "$/cancel_request"
"""Both sides may send it, and answer the request that it names with the code of a cancelled one."""
