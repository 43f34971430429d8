"""The error registry (PROTOCOL 5): every error has a code, a kind, and says if trying again helps."""

from typing import Any

from attrs import frozen


@frozen
class ErrorSpec:
    """`data` names the extra fields that an error of this kind carries."""

    code: int
    kind: str
    retryable: bool = False
    data: tuple[str, ...] = ()


_SPECS = (
    ErrorSpec(-32700, "parseError"),
    ErrorSpec(-32600, "invalidRequest"),
    ErrorSpec(-32601, "methodNotFound"),
    ErrorSpec(-32602, "invalidParams", data=("errors",)),
    ErrorSpec(-32603, "internal"),
    ErrorSpec(-32002, "notInitialized"),
    ErrorSpec(-32800, "requestCancelled", retryable=True),
    ErrorSpec(-31001, "unsupportedVersion", data=("supported",)),
    ErrorSpec(-31002, "capabilityRequired"),
    ErrorSpec(-31003, "featureDisabled"),
    ErrorSpec(-31004, "overloaded", retryable=True),
    ErrorSpec(-31005, "shuttingDown", retryable=True),
    ErrorSpec(-31006, "messageTooLarge", data=("limit",)),
    ErrorSpec(-31007, "idempotencyConflict"),
    ErrorSpec(-31009, "invalidCursor"),
    ErrorSpec(-31010, "cursorExpired", data=("earliest",)),
    ErrorSpec(-31101, "sessionNotFound"),
    ErrorSpec(-31102, "sessionClosed"),
    ErrorSpec(-31103, "sessionArchived"),
    ErrorSpec(-31105, "leaseLost", retryable=True),
    ErrorSpec(-31106, "sessionExists", data=("sessionId",)),
    ErrorSpec(-31107, "importRefused", data=("line",)),
    ErrorSpec(-31108, "sessionChanged", data=("seq",)),
    ErrorSpec(-31201, "turnInProgress", retryable=True, data=("turnId",)),
    ErrorSpec(-31202, "turnNotFound"),
    ErrorSpec(-31203, "turnMismatch", data=("actual",)),
    ErrorSpec(-31205, "queueFull", retryable=True),
    ErrorSpec(-31206, "turnTimedOut", retryable=True),
    ErrorSpec(-31208, "promptNotFound"),
    ErrorSpec(-31209, "promptTaken", data=("turnId",)),
    ErrorSpec(-31207, "hookBlocked", data=("event",)),
    ErrorSpec(-31301, "approvalNotFound"),
    ErrorSpec(-31302, "alreadyResolved", data=("resolution",)),
    ErrorSpec(-31303, "approvalExpired", data=("resolution",)),
    ErrorSpec(-31304, "optionInvalid", data=("options",)),
    ErrorSpec(-31305, "ruleNotFound"),
    ErrorSpec(-31401, "profileNotFound"),
    ErrorSpec(-31402, "modelUnavailable", data=("reason",)),
    ErrorSpec(-31403, "authRequired"),
    ErrorSpec(-31405, "modelError", data=("provider", "httpStatus")),
    ErrorSpec(-31406, "contextWindowExceeded"),
    ErrorSpec(-31407, "budgetExceeded"),
    ErrorSpec(-31501, "agentNotFound"),
    ErrorSpec(-31502, "agentClosed"),
    ErrorSpec(-31503, "nameInUse"),
    ErrorSpec(-31504, "depthExceeded"),
    ErrorSpec(-31505, "limitReached"),
    ErrorSpec(-31506, "askNotFound"),
    ErrorSpec(-31507, "askSettled", data=("outcome",)),
    ErrorSpec(-31511, "taskNotFound"),
    ErrorSpec(-31512, "taskNotClaimable", data=("status", "assignee")),
    ErrorSpec(-31513, "taskNotReady", data=("dependencies",)),
    ErrorSpec(-31514, "notOwner", data=("assignee",)),
    ErrorSpec(-31515, "transitionNotAllowed", data=("status",)),
    ErrorSpec(-31516, "rootOnly"),
    ErrorSpec(-31517, "invalidGraph", data=("reason",)),
    ErrorSpec(-31518, "notAMember"),
    ErrorSpec(-31519, "messageTooLong", data=("bytes", "limit")),
    ErrorSpec(-31551, "scheduleNotFound"),
    ErrorSpec(-31552, "scheduleInvalid"),
    ErrorSpec(-31561, "peerNotLinked"),
    ErrorSpec(-31562, "tokenInvalid"),
    ErrorSpec(-31563, "peerLimit"),
    ErrorSpec(-31601, "storeBusy", retryable=True),
    ErrorSpec(-31602, "storeReadOnly"),
    ErrorSpec(-31603, "storeCorrupt"),
    ErrorSpec(-31604, "storeVersion", data=("found", "supported")),
    ErrorSpec(-31605, "storeFull", retryable=True),
    ErrorSpec(-31606, "storeUnsupported"),
    ErrorSpec(-31607, "storeIo", retryable=True),
    ErrorSpec(-31701, "pathDenied", data=("path",)),
    ErrorSpec(-31702, "pathNotFound", data=("path",)),
    ErrorSpec(-31703, "blobNotFound"),
)

ERRORS: dict[str, ErrorSpec] = {spec.kind: spec for spec in _SPECS}
"""Every error by its kind."""

BY_CODE: dict[int, ErrorSpec] = {spec.code: spec for spec in _SPECS}


class CallboardError(Exception):
    """An error that a client may see: its kind is in `ERRORS`, its text names the thing and the way out.

    `data` holds the kind's extra fields, already in wire form (camelCase, JSON values).
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        data: dict[str, Any] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.spec = ERRORS[kind]
        self.message = message
        self.data: dict[str, Any] = data or {}
        self.retry_after_ms = retry_after_ms

    @property
    def kind(self) -> str:
        return self.spec.kind

    @property
    def code(self) -> int:
        return self.spec.code

    def wire(self, correlation_id: str) -> dict[str, Any]:
        """The JSON-RPC ``error`` object. `correlation_id` finds the matching lines of the server's log."""
        data: dict[str, Any] = {
            **self.data,
            "kind": self.kind,
            "retryable": self.spec.retryable,
            "correlationId": correlation_id,
        }
        if self.retry_after_ms is not None:
            data["retryAfterMs"] = self.retry_after_ms
        return {"code": self.code, "message": self.message, "data": data}
