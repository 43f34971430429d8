"""What the other side of a conversation answers when it does not do what it was asked."""

from typing import Any


class PeerError(Exception):
    """An error for an answer, or a result of the wrong shape."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data
