"""Time as text: RFC 3339 in UTC with milliseconds, which sorts as it reads."""

from datetime import UTC, datetime


def utc_now() -> str:
    """The time now, such as ``2031-05-17T09:30:00.123Z``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def parse(text: str) -> datetime:
    """The inverse of `utc_now`."""
    return datetime.fromisoformat(text)
