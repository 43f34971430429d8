"""Time as text: RFC 3339 in UTC with milliseconds, which sorts as it reads."""

from datetime import UTC, datetime, timedelta


def utc_now() -> str:
    """The time now, such as ``2031-05-17T09:30:00.123Z``."""
    return _text(datetime.now(UTC))


def later(at: str, seconds: float) -> str:
    """The time `seconds` after `at`."""
    return _text(parse(at) + timedelta(seconds=seconds))


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def is_ours(text: str) -> bool:
    """Whether a text from elsewhere is a time in this very form, and so sorts with ours."""
    try:
        return _text(parse(text)) == text
    except ValueError:
        return False


def parse(text: str) -> datetime:
    """The inverse of `utc_now`."""
    return datetime.fromisoformat(text)
