"""``[[hooks.EVENT]]``: the person's own commands at the turning points of a run (execution 5 and 50).

They stand in the user's own ``config.toml`` and nowhere else: a workspace is untrusted, a client may
pass on what a workspace says, and an environment is inherited.
"""

from collections.abc import Mapping
from typing import Any, cast

from attrs import frozen

from .fields import Kind, Unfit, setting

DEFAULT_TIMEOUT_MS = 60_000
_LONGEST_MS = 600_000
_MOST = 50
_KEYS = ("command", "match", "timeout_ms")


@frozen(kw_only=True)
class HookCommand:
    """A command: a line for the shell, or a program and its arguments. `match` names the tools that it
    is for, by patterns (``write_*``); without it, all. `timeout_ms` is when it is ended."""

    command: str | tuple[str, ...]
    match: tuple[str, ...] = ()
    timeout_ms: int = DEFAULT_TIMEOUT_MS


def commands(doc: str, *, by_tool: bool = False) -> tuple[HookCommand, ...]:
    """A list of commands, in the order in which they run; none unless given. `by_tool`: each may be for
    some tools only."""

    def parse(value: Any) -> tuple[HookCommand, ...]:
        if not isinstance(value, list):
            raise Unfit('expected a list of tables, each with a command: [[hooks.…]] command = "…"')
        items = cast("list[Any]", value)
        if len(items) > _MOST:
            raise Unfit(f"there are {len(items)} commands; at most {_MOST} are taken")
        good: list[HookCommand] = []
        faults: list[str] = []
        for number, item in enumerate(items, 1):
            try:
                good.append(_command(item, number, by_tool))
            except Unfit as unfit:
                faults.append(str(unfit))
        if faults:  # the others stay: one of them may be what keeps an agent from something
            raise Unfit("; ".join(faults), rest=tuple(good))
        return tuple(good)

    def from_text(text: str) -> tuple[HookCommand, ...]:
        raise Unfit("cannot be given in the environment; use your own config.toml")

    kind = Kind(doc=doc, parse=parse, from_text=from_text, show=_shown)
    return cast("tuple[HookCommand, ...]", setting((), kind))


def _command(item: Any, number: int, by_tool: bool) -> HookCommand:
    """What was found is not quoted: a command line may hold a key."""
    if not isinstance(item, dict):
        raise Unfit(f"number {number}: expected a table with a command")
    table = cast("dict[str, Any]", item)
    for key in table:
        if key not in _KEYS:
            raise Unfit(f"number {number}: there is no {key!r}; there are {', '.join(_KEYS)}")
    if "match" in table and not by_tool:
        raise Unfit(f"number {number}: match is for pre_tool_use and post_tool_use")
    return HookCommand(
        command=_line(table.get("command"), number),
        match=_patterns(table.get("match"), number),
        timeout_ms=_timeout(table.get("timeout_ms", DEFAULT_TIMEOUT_MS), number),
    )


def _line(value: Any, number: int) -> str | tuple[str, ...]:
    if isinstance(value, str) and value.strip() and "\0" not in value:
        return value
    if isinstance(value, list):
        words = cast("list[Any]", value)
        if words and all(isinstance(word, str) and "\0" not in word for word in words) and words[0]:
            return tuple(words)
    raise Unfit(
        f"number {number}: command is a command line, or a list of a program and its arguments"
    )


def _patterns(value: Any, number: int) -> tuple[str, ...]:
    if value is None:
        return ()
    patterns = cast("list[Any]", value if isinstance(value, list) else [value])
    if not patterns or not all(isinstance(each, str) and each.strip() for each in patterns):
        raise Unfit(f"number {number}: match is the name of a tool, a pattern, or a list of them")
    for each in patterns:
        if each.count("[") != each.count("]"):  # it would be taken literally, and match nothing
            raise Unfit(f"number {number}: a pattern of match has a bracket without its other half")
    return tuple(each.strip() for each in patterns)


def _timeout(value: Any, number: int) -> int:
    if type(value) is not int or not 1 <= value <= _LONGEST_MS:
        raise Unfit(f"number {number}: timeout_ms is a whole number from 1 to {_LONGEST_MS:,} (ms)")
    return value


def _shown(value: Any) -> list[Mapping[str, Any]]:
    """How many there are and when they run, without the command lines."""
    return [
        {"command": "set", "match": list(each.match), "timeoutMs": each.timeout_ms}
        for each in cast("tuple[HookCommand, ...]", value)
    ]


@frozen(kw_only=True)
class HookSettings:
    """The commands of each event."""

    session_start: tuple[HookCommand, ...] = commands("Commands when a turn begins.")
    user_prompt_submit: tuple[HookCommand, ...] = commands(
        "Commands before a person's prompt is taken."
    )
    pre_tool_use: tuple[HookCommand, ...] = commands("Commands before a tool runs.", by_tool=True)
    post_tool_use: tuple[HookCommand, ...] = commands("Commands after a tool ran.", by_tool=True)
    stop: tuple[HookCommand, ...] = commands("Commands when the agent is about to end its turn.")
    session_end: tuple[HookCommand, ...] = commands("Commands when a turn has ended.")
    pre_compact: tuple[HookCommand, ...] = commands("Commands before a session is summarised.")
    notification: tuple[HookCommand, ...] = commands("Commands when the agent waits for a person.")
