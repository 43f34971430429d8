"""What an agent tells, within bounds: cut, or left out, where it comes in. Pure.

Texts of messages and results are not among it; they are counted by whoever keeps them.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from attrs import evolve

from ...tools.display import one_line, well_formed
from ..contract import content, sessions, tool_calls, updates

_NAME_CHARS: Final = 200
_TITLE_CHARS: Final = 16 * 1024
"""Many agents' titles are the command line and nothing else, which is judged as it is."""
_WORDS_CHARS: Final = 4_000
_ID_CHARS: Final = 1_000
_PATH_CHARS: Final = 4_096
_MIME_CHARS: Final = 100
_URI_CHARS: Final = 8_192
_ENTRIES: Final = 200
_COMMANDS: Final = 500
_LOCATIONS: Final = 500
_PARTS: Final = 1_000
_OPTIONS: Final = 50

T = TypeVar("T")


def bounded(update: Any) -> Any:
    """An update, or None where what it is about has no usable name."""
    match update:
        case updates.ToolCall() | updates.ToolCallChanged():
            return bounded_call(update)
        case updates.AgentMessageChunk() | updates.AgentThoughtChunk():
            return evolve(
                update,
                content=_block(update.content),
                message_id=_cut(update.message_id, _ID_CHARS),
                meta=None,
            )
        case updates.Plan(entries=entries):
            kept = (evolve(e, content=_cut(e.content, _WORDS_CHARS)) for e in entries[:_ENTRIES])
            return evolve(update, entries=tuple(kept), meta=None)
        case updates.Notice(severity=severity, title=title, description=description):
            known = severity if severity in ("info", "warning", "error") else "info"
            return updates.Notice(
                severity=known,
                title=one_line(title, _NAME_CHARS) or "A notice",
                description=_cut(description, _WORDS_CHARS),
            )
        case updates.AvailableCommandsUpdate(available_commands=commands):
            named = (
                evolve(
                    c,
                    name=_cut(c.name, _NAME_CHARS),
                    description=_cut(c.description, _WORDS_CHARS),
                    input=None,
                    meta=None,
                )
                for c in commands[:_COMMANDS]
            )
            return evolve(update, available_commands=tuple(named), meta=None)
        case updates.CurrentModeUpdate(current_mode_id=mode):
            return update if len(mode) <= _NAME_CHARS else None
        case updates.ConfigOptionUpdate(config_options=options):
            return updates.ConfigOptionUpdate(config_options=bounded_options(options))
        case updates.UsageUpdate():
            return update
        case _:
            return None


def bounded_call(call: Any) -> Any:
    """A call, what is told of one, or what is asked about it; None without a usable id."""
    if not 0 < len(call.tool_call_id) <= _ID_CHARS:
        return None
    places = call.locations
    return evolve(
        call,
        title=_cut(call.title, _TITLE_CHARS),
        name=_cut(call.name, _NAME_CHARS),
        kind=_cut(call.kind, _NAME_CHARS),
        status=_cut(call.status, _NAME_CHARS),
        content=None
        if call.content is None
        else tuple(_part(each) for each in call.content[:_PARTS]),
        locations=None
        if places is None
        else tuple(p for p in places[:_LOCATIONS] if len(p.path) <= _PATH_CHARS),
    )


def bounded_options(options: Sequence[Any]) -> tuple[Any, ...]:
    """Options that can be set, each of a kind that is known."""
    known = sessions.SessionConfigSelect | sessions.SessionConfigBoolean
    return tuple(each for each in options if isinstance(each, known))[:_OPTIONS]


def _part(part: Any) -> Any:
    return (
        evolve(part, content=_block(part.content)) if isinstance(part, tool_calls.Content) else part
    )


def _block(block: Any) -> Any:
    match block:
        case content.ImageContent() | content.AudioContent():
            return evolve(block, mime_type=one_line(block.mime_type, _MIME_CHARS))
        case content.ResourceLink():
            return evolve(
                block,
                name=one_line(block.name, _NAME_CHARS),
                uri=_cut(block.uri, _URI_CHARS),
                description=None,
            )
        case _:
            return block


def _cut(text: T, limit: int) -> T:
    """A text, if it is one, of at most `limit` characters."""
    if isinstance(text, str) and len(text) > limit:
        return well_formed(text[: limit - 1]) + "…"  # pyright: ignore[reportReturnType]
    return text
