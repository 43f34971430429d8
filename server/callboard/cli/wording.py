"""Numbers, times and outcomes in few words."""

from datetime import datetime

from callboard_rpc.common import ToolStatus, Usage

STATUS_MARKS: dict[ToolStatus, tuple[str, str]] = {
    "ok": ("✓", "green"),
    "error": ("✗", "red"),
    "denied": ("⊘", "yellow"),
    "timed_out": ("⏱", "red"),
    "superseded": ("↷", "yellow"),
    "cancelled": ("■", "yellow"),
    "interrupted": ("■", "red"),
}
"""A sign and its colour for each status of a tool call."""

NOTICE_MARKS: dict[str, tuple[str, str]] = {
    "info": ("ℹ Note", "cyan"),
    "warning": ("! Warning", "yellow"),
    "error": ("✗ Error", "bold red"),
}
"""A sign with a word, and its colour, for each severity of a notice."""

OUTCOME_WORDS: dict[str, tuple[str, str]] = {
    "completed": ("completed", "green"),
    "failed": ("failed", "bold red"),
    "cancelled": ("cancelled", "yellow"),
    "interrupted": ("interrupted", "red"),
    "timed_out": ("timed out", "red"),
    "parked": ("waits for an approval", "yellow"),
    "dropped": ("dropped before it began", "yellow"),
    "recorded": ("recorded; it woke nobody", "dim"),
}


def duration(milliseconds: int) -> str:
    """``12 ms``, ``3.4 s``, ``2 min 5 s``."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def local_time(at: str, *, seconds: bool = False) -> str:
    """An RFC 3339 time as local date and minute, or second; as it came when it is none."""
    shape = "%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M"
    try:
        return datetime.fromisoformat(at).astimezone().strftime(shape)
    except ValueError:
        return at


def usage(spent: Usage | None) -> str:
    """Tokens and cost as far as they are known; empty when nothing is."""
    if spent is None:
        return ""
    parts: list[str] = []
    if spent.input_tokens is not None:
        cached = f" ({spent.cache_read_tokens:,} cached)" if spent.cache_read_tokens else ""
        parts.append(f"{spent.input_tokens:,} tokens in{cached}")
    if spent.output_tokens is not None:
        parts.append(f"{spent.output_tokens:,} out")
    if spent.cost is not None:
        parts.append(f"{spent.cost:.4f} {spent.currency or ''}".strip())
    if spent.partial and parts:
        parts.append("not all reported")
    return ", ".join(parts)


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def size(count: float) -> str:
    """Bytes as ``12 bytes``, ``3.4 MiB``."""
    if count < 1024:
        return plural(int(count), "byte")
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"
