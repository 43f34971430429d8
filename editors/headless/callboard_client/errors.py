"""What can go wrong between a client and a server."""

from typing import Any, cast

from callboard_rpc.common import Json


class ClientError(Exception):
    """The base of every error that this package raises by itself."""


class StartError(ClientError):
    """The server could not be started, or did not answer the handshake."""


class ConnectionLost(ClientError):
    """The server ended, or closed its pipe, before it answered.

    Nothing is known about what the request did. A request with an idempotency key can be sent
    again to another server of the same store.
    """


class ProtocolError(ClientError):
    """The server answered, but with something that is not what the contract says."""


class RemoteError(ClientError):
    """The server's answer to a request was an error. Switch on `kind` (PROTOCOL 5).

    `retry_after_ms` is the server's advice, in milliseconds; `correlation_id` finds the matching
    lines of the server's log; `data` is the whole ``data`` of the error as it came.
    """

    def __init__(
        self, *, method: str, code: int, kind: str, message: str, retryable: bool, data: Json
    ) -> None:
        super().__init__(f"{message} ({kind})" if kind else message)
        self.method = method
        self.code = code
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.data = data

    @property
    def retry_after_ms(self) -> int | None:
        value = self.data.get("retryAfterMs")
        return value if type(value) is int else None

    @property
    def correlation_id(self) -> str | None:
        value = self.data.get("correlationId")
        return value if type(value) is str else None


def remote_error(method: str, error: Any) -> RemoteError:
    """The ``error`` member of a response, whatever shape it has, as an exception."""
    fields: Json = cast("Json", error) if isinstance(error, dict) else {"message": str(error)}
    code, message, data = fields.get("code"), fields.get("message"), fields.get("data")
    known: Json = cast("Json", data) if isinstance(data, dict) else {}
    kind = known.get("kind")
    return RemoteError(
        method=method,
        code=code if type(code) is int else 0,
        kind=kind if type(kind) is str else "unknown",
        message=message if type(message) is str else "the server gave no reason",
        retryable=known.get("retryable") is True,
        data=known,
    )
