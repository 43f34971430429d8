"""What a lifecycle hook's command has decided, told from how it ended. Nothing here runs anything.

Exit 0: fine; one JSON object on stdout may say more. Exit 2: it objects, and stderr says why. Anything
else is a fault of the hook, which is logged and decides nothing (execution 5 and 50).
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, cast

import orjson
from attrs import frozen

from callboard_rpc.common import Json

from ..config.hooks import HookCommand

HookEvent: TypeAlias = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "SessionEnd",
    "PreCompact",
    "Notification",
]

SETTINGS: Mapping[HookEvent, str] = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "user_prompt_submit",
    "PreToolUse": "pre_tool_use",
    "PostToolUse": "post_tool_use",
    "Stop": "stop",
    "SessionEnd": "session_end",
    "PreCompact": "pre_compact",
    "Notification": "notification",
}
"""The key of each event in ``[hooks]``."""

OBSERVED: frozenset[HookEvent] = frozenset({"SessionEnd", "Notification"})
"""Events that have happened already: their hooks all run, and decide nothing."""

MAX_REASON = 8_000
MAX_CONTEXT = 32_000
"""Characters of what a hook says that the model is told."""

_BLOCK_EXIT = 2


@frozen(kw_only=True)
class Ran:
    """How a command ended. `cut`: it printed more than is read."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    cut: bool = False


@frozen(kw_only=True)
class Finding:
    """What one command says. `block` is why it objects, `context` is for the model, `fault` is what was
    wrong with the command itself; a faulty one says nothing else."""

    block: str | None = None
    context: str | None = None
    fault: str | None = None


@frozen(kw_only=True)
class Decision:
    """What all commands of an event say together. `block` is the first objection."""

    block: str | None = None
    context: tuple[str, ...] = ()


UNDISPUTED = Decision()


def applies(command: HookCommand, tool: str | None) -> bool:
    """Whether a command is for this tool; one without `match` is for every one."""
    if not command.match:
        return True
    return tool is not None and any(fnmatchcase(tool, pattern) for pattern in command.match)


def finding(ran: Ran) -> Finding:
    """What a command's end says."""
    if ran.timed_out:
        return Finding(fault="it took too long and was ended")
    if ran.exit_code == _BLOCK_EXIT:
        said = _text(ran.stderr)[:MAX_REASON]
        return Finding(block=said or "A hook objected and did not say why.")
    if ran.exit_code != 0:
        said = _text(ran.stderr)[:500]
        return Finding(
            fault=f"it ended with exit code {ran.exit_code}{f': {said}' if said else ''}"
        )
    if not ran.stdout.strip():
        return Finding()
    if ran.cut:
        return Finding(fault="it printed too much")
    try:
        value: Any = orjson.loads(ran.stdout)
    except orjson.JSONDecodeError:
        return Finding(fault="what it printed is not JSON")
    if not isinstance(value, dict):
        return Finding(fault="what it printed is not a JSON object")
    return _of_object(cast("Json", value))


def _of_object(value: Json) -> Finding:
    decision, reason, context = (value.get(key) for key in ("decision", "reason", "context"))
    if decision not in (None, "block"):
        return Finding(fault='its decision is not "block"; to agree, leave it out')
    if not isinstance(reason, str | None) or not isinstance(context, str | None):
        return Finding(fault="its reason and its context must be text")
    if decision == "block":
        said = (reason or "").strip()[:MAX_REASON]
        return Finding(block=said or "A hook objected and did not say why.")
    return Finding(context=(context or "").strip()[:MAX_CONTEXT] or None)


def together(event: HookEvent, findings: Iterable[Finding]) -> Decision:
    """The decision of several commands, asked in order; findings after an objection are not looked at
    (they are not even made, when `findings` is lazy). Those of an observed event decide nothing."""
    context: list[str] = []
    for each in findings:
        if event in OBSERVED:
            continue
        if each.block is not None:
            return Decision(block=each.block, context=tuple(context))
        if each.context is not None:
            context.append(each.context)
    return Decision(context=tuple(context))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip()
