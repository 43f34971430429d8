"""Exceptions to JSON-RPC errors. What a client may see is decided here and nowhere else."""

import logging
import traceback
from collections.abc import Callable
from typing import Any, cast

from callboard_rpc.convert import StructureError
from callboard_rpc.errors import CallboardError

logger = logging.getLogger("callboard.rpc")

_RETRY_AFTER_MS = 1000


def unwrap(fault: BaseException) -> BaseException:
    """The exception inside of groups that hold a single one; task groups wrap what they pass on."""
    while isinstance(fault, BaseExceptionGroup):
        members = cast("BaseExceptionGroup[BaseException]", fault).exceptions
        if len(members) != 1:
            break
        fault = members[0]
    return cast("BaseException", fault)


class Faults:
    """Makes the error object for a failed request, and writes the log's side of it.

    Args:
        redact: takes secrets out of a text; applied to all that is logged or sent.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    def error(self, fault: BaseException, *, correlation_id: str, method: str) -> dict[str, Any]:
        """The ``error`` object for `fault`. Only a `CallboardError` and bad params say what happened;
        everything else gets a correlation id, and its traceback goes to the log."""
        fault = unwrap(fault)
        match fault:
            case CallboardError():
                return self._seen(fault, correlation_id)
            case StructureError():
                error = CallboardError(
                    "invalidParams",
                    f"params of {method} are wrong: {fault}",
                    data={"errors": fault.errors},
                )
                return self._seen(error, correlation_id)
            case RecursionError():
                deep = CallboardError(
                    "invalidParams", f"params of {method} are nested too deeply to be dealt with"
                )
                return self._seen(deep, correlation_id)
            case TimeoutError():
                self._log(fault, correlation_id, method)
                late = CallboardError(
                    "overloaded",
                    f"{method} did not finish in time; try again",
                    retry_after_ms=_RETRY_AFTER_MS,
                )
                return self._seen(late, correlation_id)
            case _:
                self._log(fault, correlation_id, method)
                internal = CallboardError(
                    "internal",
                    f"{method} failed inside the server; its log has the cause under {correlation_id}",
                )
                return internal.wire(correlation_id)

    def _seen(self, error: CallboardError, correlation_id: str) -> dict[str, Any]:
        wire = error.wire(correlation_id)
        wire["message"] = self._redact(wire["message"])
        wire["data"] = self._clean(wire["data"])
        return wire

    def _clean(self, value: Any) -> Any:
        """What goes with the error is no less told than its message."""
        match value:
            case str():
                return self._redact(value)
            case dict():
                items = cast("dict[str, Any]", value)
                return {key: self._clean(item) for key, item in items.items()}
            case list() | tuple():
                return [self._clean(item) for item in cast("list[Any]", value)]
            case _:
                return value

    def _log(self, fault: BaseException, correlation_id: str, method: str) -> None:
        text = self._redact("".join(traceback.format_exception(fault)))
        logger.error("%s %s failed\n%s", correlation_id, method, text)
