"""The conversation as a state machine: what may be said when, and how the process ends. Pure.

Before ``initialize`` requests are refused with -32002 and notifications dropped; a second
``initialize`` and anything after ``shutdown`` are -32600; ``exit`` is always heard (PROTOCOL 1).
"""

from enum import Enum
from typing import Literal, NamedTuple, TypeAlias, assert_never


class Phase(Enum):
    NEW = "new"
    """Nothing was agreed yet."""
    OPEN = "open"
    """``initialize`` was answered with a result."""
    SHUT = "shut"
    """``shutdown`` was asked for; only ``exit`` may follow."""
    ENDING = "ending"
    """The input ended, a signal came, the parent died: what runs is brought to an end."""


EndReason: TypeAlias = Literal["eof", "exit", "parent", "sigterm", "sigint", "desync"]
"""``eof`` is also a client that closed its reading end; ``parent`` a dead ``processId``."""


class Refusal(NamedTuple):
    """The error for a request that may not be made now."""

    kind: Literal["notInitialized", "invalidRequest", "shuttingDown"]
    message: str


def judge_request(phase: Phase, method: str) -> Refusal | None:
    """Why a request may not be made in `phase`, or ``None`` when it may."""
    match phase:
        case Phase.NEW:
            if method == "initialize":
                return None
            return Refusal("notInitialized", f"{method} came before initialize; send that first")
        case Phase.OPEN:
            if method == "initialize":
                return Refusal("invalidRequest", "initialize was answered already; it comes once")
            return None
        case Phase.SHUT:
            return Refusal("invalidRequest", f"{method} came after shutdown; only exit may follow")
        case Phase.ENDING:
            return Refusal("shuttingDown", f"the server is ending; {method} was not begun")
        case _:
            assert_never(phase)


def hears_notification(phase: Phase, method: str) -> bool:
    """Whether a notification is acted upon in `phase`; if not it is dropped."""
    if method == "exit":
        return True
    if method == "$/cancelRequest":
        return phase is not Phase.NEW
    return phase is Phase.OPEN


def exit_code(reason: EndReason, *, shutdown_seen: bool) -> int:
    """The process' exit code: after ``shutdown`` always 0.

    Without it: ``exit`` and a lost framing are 1, a signal is 128 and its number; the end of the
    input and a dead parent are the usual ways in which an editor leaves, and 0.
    """
    if shutdown_seen:
        return 0
    match reason:
        case "exit" | "desync":
            return 1
        case "sigterm":
            return 143
        case "sigint":
            return 130
        case "eof" | "parent":
            return 0
        case _:
            assert_never(reason)
