"""What a provider's complaint means: an HTTP status or an error object in, a `Failure` out.

Pure. Provider text is untrusted: it is bounded, put on one line and redacted here, before anything
else may see it.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

import orjson
from attrs import frozen

from callboard_rpc.common import Failure

RETRYABLE_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""execution 5, and 408/425 (a time-out and "too early" by other names) and 529 (overloaded)."""

_MESSAGE_LIMIT = 500
_REDACTED = "[redacted]"
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.I)
# Providers quote keys back, with stars in the middle: what is left of one is still a part of it.
_KEY_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|nvapi|AIza|fw)[-_][\w*.-]{6,}|(?i:\bbearer\s+)[\w*.~+/=-]{8,}"
)
_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.I | re.S)

_CONTEXT_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"}
)
_CONTEXT_WORDS = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum (?:context|prompt|input)|max_model_len"
    r"|(?:prompt|input|request|conversation)[^.]{0,40}too (?:long|large|many tokens)"
    r"|too many (?:input |prompt )?tokens|reduce the length",
    re.I,
)
_MODEL_WORDS = re.compile(
    r"\bmodel\b.{0,120}(?:not found|not exist|not available|unknown|not supported|invalid)"
    r"|(?:no such|unknown|invalid|unsupported) model|not a valid model|try pulling it",
    re.I | re.S,
)
_MODEL_CODES = frozenset({"model_not_found", "model_not_available", "invalid_model"})
_SPENT_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
_AUTH_CODES = frozenset(
    {"invalid_api_key", "authentication_error", "permission_error", "invalid_authentication"}
)
_OVERLOAD_CODES = frozenset(
    {
        "rate_limit_exceeded",
        "rate_limit_error",
        "overloaded_error",
        "server_error",
        "api_error",
        "internal_error",
        "timeout",
        "timeout_error",
    }
)


@frozen(kw_only=True)
class Complaint:
    """A provider's error as it came: its text, its machine-readable names, a status if it has one."""

    message: str
    codes: frozenset[str] = frozenset()
    status: int | None = None


def read_complaint(payload: object) -> Complaint | None:
    """The complaint inside any of the error shapes in use; None when there is none to be seen.

    Known are ``{"error": {...}}``, ``{"error": "text"}``, ``{"message": ...}``, ``{"detail": ...}``,
    ``{"errors": [...]}``, a list of these, and a bare string.
    """
    match payload:
        case str():
            return Complaint(message=payload) if payload.strip() else None
        case list():
            found = (read_complaint(item) for item in cast("list[object]", payload))
            return next((each for each in found if each is not None), None)
        case dict():
            return _read_object(cast("dict[str, Any]", payload))
        case _:
            return None


def _read_object(payload: dict[str, Any]) -> Complaint | None:
    codes = frozenset(
        value
        for key in ("code", "type", "status", "reason")
        if isinstance(value := payload.get(key), str) and value
    )
    status = next(
        (
            value
            for key in ("code", "status", "status_code", "http_status")
            if isinstance(value := payload.get(key), int) and 300 <= value <= 599
        ),
        None,
    )
    inner = next(
        (
            found
            for key in ("error", "errors", "message", "detail", "msg", "response")
            if key in payload and (found := read_complaint(payload[key])) is not None
        ),
        None,
    )
    if inner is None:
        return None
    message = inner.message
    place = payload.get("loc")
    if isinstance(place, list):
        # Servers built on pydantic name the field here and nowhere else.
        message = f"{'.'.join(map(str, cast('list[object]', place)))}: {message}"
    raw = _nested_raw(payload.get("metadata"))
    if raw and raw not in message:
        # OpenRouter says "Provider returned error" and puts what matters here.
        message = f"{message}: {raw}"
    return Complaint(message=message, codes=inner.codes | codes, status=inner.status or status)


def _nested_raw(metadata: object) -> str | None:
    if not isinstance(metadata, dict):
        return None
    raw = cast("dict[str, Any]", metadata).get("raw")
    if not isinstance(raw, str):
        return None
    try:
        found = read_complaint(orjson.loads(raw))
    except orjson.JSONDecodeError:
        return raw
    return found.message if found is not None else None


def is_secret_header(name: str) -> bool:
    """Whether the value of the header `name` has to be kept out of texts."""
    return _SECRET_HEADER.search(name) is not None


def clean(text: str, redact: Callable[[str], str], headers: Mapping[str, str]) -> str:
    """`text` on one line, bounded, without the secrets of `headers` and whatever `redact` knows."""
    for name, value in headers.items():
        if not is_secret_header(name):
            continue
        for secret in (value, *value.split()):
            if len(secret) >= 6 and secret.lower() != "bearer":
                text = text.replace(secret, _REDACTED)
    text = _KEY_SHAPES.sub(_REDACTED, redact(text))
    text = _BLANK.sub(" ", text.encode("utf-8", "replace").decode()).strip()
    return text if len(text) <= _MESSAGE_LIMIT else text[: _MESSAGE_LIMIT - 1] + "…"


def body_text(body: bytes) -> str:
    """What a person can read of an error body that is not JSON; markup is dropped."""
    text = body.decode("utf-8", "replace")
    if "<" in text[:200]:
        text = _TAGS.sub(" ", text)
    return text.strip()


def retry_after_ms(headers: Mapping[str, str], now: datetime) -> int | None:
    """``Retry-After`` (or ``retry-after-ms``) in milliseconds, seconds or an HTTP date; never negative."""
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return round(exact)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return round(seconds * 1000)
    if value is None:
        return None
    try:
        at = parsedate_to_datetime(value.strip())
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0, round((at - now).total_seconds() * 1000))


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < 1e9 else None


def http_failure(
    provider: str,
    status: int,
    complaint: Complaint,
    *,
    who: str,
    retry_after: int | None = None,
) -> Failure:
    """The failure of a response with `status`. `complaint.message` must be clean already. `who` is
    what a person calls the provider (`call.named`)."""
    said = complaint.message or "no explanation"
    kind, retryable, hint = _judge(status, complaint)
    message = f"{who} answered {status}: {said}"
    return Failure(
        kind=kind,
        message=f"{message} {hint}".strip() if hint else message,
        retryable=retryable,
        provider=provider,
        http_status=status,
        retry_after_ms=retry_after if retryable else None,
    )


def _judge(status: int, complaint: Complaint) -> tuple[str, bool, str]:
    about_context = bool(complaint.codes & _CONTEXT_CODES)
    about_context |= bool(_CONTEXT_WORDS.search(complaint.message))
    about_model = bool(complaint.codes & _MODEL_CODES)
    about_model |= bool(_MODEL_WORDS.search(complaint.message))
    if complaint.codes & _SPENT_CODES or status == 402:
        return (
            "modelError",
            False,
            "(the account's credit is spent; top it up, or choose another model)",
        )
    if status in (401, 403) or complaint.codes & _AUTH_CODES:
        return "authRequired", False, "(check the API key and what it may use)"
    if about_context and status in (400, 413, 422, 500):
        return "contextWindowExceeded", False, ""
    if status == 404 or (about_model and status in (400, 422)):
        return "modelUnavailable", False, "(check the model's name and the base URL)"
    if 300 <= status < 400:
        return (
            "modelUnavailable",
            False,
            "(redirects are not followed; set the base URL to the final address)",
        )
    return "modelError", status in RETRYABLE_STATUS, ""


def stream_failure(provider: str, complaint: Complaint, *, who: str) -> Failure:
    """The failure that an error object in mid-stream tells of. `complaint.message` must be clean.
    `who` as for `http_failure`."""
    said = complaint.message or "no explanation"
    status = complaint.status
    if status is not None:
        kind, retryable, _ = _judge(status, complaint)
    else:
        kind, retryable, _ = _judge(400, complaint)
        retryable = retryable or bool(complaint.codes & _OVERLOAD_CODES)
    return Failure(
        kind=kind,
        message=f"{who} ended the stream with an error: {said}",
        retryable=retryable and kind == "modelError",
        provider=provider,
        http_status=status,
    )
