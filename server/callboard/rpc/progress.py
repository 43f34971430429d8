"""``$/progress`` of a request that may take long, for a client that gave a token (LSP 3.17)."""

from types import TracebackType
from typing import Any

from .call import Call


class Progress:
    """Tells the beginning, what happens in between, and the end, however it comes; nothing at all
    without a token. Use as a context manager."""

    def __init__(self, call: Call, token: str | int | None, title: str) -> None:
        self._connection = call.connection
        self._token = token
        self._title = title
        self._last: str | None = None
        self._ended = False

    def __enter__(self) -> "Progress":
        self._send({"kind": "begin", "title": self._title, "cancellable": False})
        return self

    def report(self, message: str, percentage: int | None = None) -> None:
        """Tells what is the case now, once for as long as it is. Nothing once it has ended."""
        if message != self._last and not self._ended:
            self._last = message
            far = {} if percentage is None else {"percentage": percentage}
            self._send({"kind": "report", "message": message, **far})

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended = True
        self._send({"kind": "end"})

    def _send(self, value: dict[str, Any]) -> None:
        if self._token is not None:
            self._connection.notify("$/progress", {"token": self._token, "value": value})
