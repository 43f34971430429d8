"""Trying again what the store refuses: which failures may pass, and how long to wait each time."""

from collections.abc import Iterator

from callboard_rpc.errors import CallboardError

_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 2.0


def may_pass(error: CallboardError) -> bool:
    """Whether a failure of the store can be over later: space is freed, permissions are mended."""
    return error.kind == "storeReadOnly" or (
        error.spec.retryable and error.kind.startswith("store")
    )


def delays() -> Iterator[float]:
    """Seconds to wait before each new attempt, without an end."""
    delay = _FIRST_DELAY_S
    while True:
        yield delay
        delay = min(2 * delay, _LONGEST_DELAY_S)
