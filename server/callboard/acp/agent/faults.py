"""Errors as this protocol has them: its own codes where it has one, else Callboard's, always with words."""

from collections.abc import Callable
from typing import Any, Final

from ...rpc.fault import Faults

_CODES: Final = {
    "sessionNotFound": -32002,
    "authRequired": -32000,
    "notInitialized": -32600,
}
"""What the protocol has a code of its own for. The kind stays in ``data``."""


def code_of(kind: str, code: int) -> int:
    """The code for a kind of Callboard's."""
    return _CODES.get(kind, code)


def fault_of(
    faults: Faults, new_id: Callable[[], str]
) -> Callable[[BaseException, str], dict[str, Any]]:
    """What makes the ``error`` object of whatever a handler raises."""

    def fault(raised: BaseException, method: str) -> dict[str, Any]:
        error = faults.error(raised, correlation_id=new_id(), method=method)
        error["code"] = code_of(error["data"]["kind"], error["code"])
        return error

    return fault
