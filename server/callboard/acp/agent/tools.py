"""Tool calls as an editor shows them: what is asked, what runs, what came of it. Pure."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, Final

from callboard_rpc import approvals, common, events

from ..contract import tool_calls as acp
from ..contract.updates import ToolCall, ToolCallChanged
from .blocks import text_block
from .texts import cut, cut_values, fenced, heading, weight

_TEXT_BYTES: Final = 24 * 1024
_DIFF_BYTES: Final = 16 * 1024
_INPUT_BYTES: Final = 12 * 1024
_LOCATION_BYTES: Final = 4 * 1024
_AROUND_BYTES: Final = 60
"""What stands around a diff or a location, as JSON."""
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*$", re.MULTILINE)
_PRINTED: Final = frozenset({"execute", "read", "search"})
"""Kinds whose text is output, not words."""


def begun(call: events.ToolCall) -> ToolCall:
    """A call that is in the log: it runs, or waits for somebody's word."""
    return ToolCall(
        tool_call_id=call.call_id,
        title=heading(call.title or call.name),
        name=heading(call.name),
        kind=call.kind,
        status="pending" if call.approval_id is not None else "in_progress",
        locations=_locations(call.locations),
        raw_input=raw_input(call.arguments),
    )


def asked(approval: approvals.Approval, kind: acp.ToolKind) -> ToolCall:
    """A call of which the client has not heard, told by what is asked about it."""
    return ToolCall(
        tool_call_id=approval.call_id,
        title=heading(title_of(approval)),
        name=heading(approval.tool),
        kind=kind,
        status="pending",
        content=subject_content(approval.subject) or None,
        raw_input=subject_input(approval.subject),
    )


def title_of(approval: approvals.Approval) -> str:
    """What is asked; of an agent below the session, with the way to it."""
    if approval.session_id == approval.root_id:
        return approval.title
    way = " / ".join(step.name for step in approval.path[1:]) or "an agent"
    return f"{way}: {approval.title}"


def subject_content(subject: Any) -> tuple[acp.ToolCallContent, ...]:
    match subject:
        case approvals.FileChangeSubject(changes=changes):
            return tuple(diffs(changes))
        case approvals.CommandSubject(command=command, cwd=cwd):
            return (words(f"{fenced(cut(command, _TEXT_BYTES))}\nin {cwd}"),)
        case approvals.FormSubject(message=message):
            return (words(cut(message, _TEXT_BYTES)),)
        case _:
            return ()


def subject_input(subject: Any) -> Any:
    match subject:
        case approvals.CommandSubject(command=command, cwd=cwd):
            return raw_input({"command": command, "cwd": cwd})
        case approvals.ToolCallSubject(arguments=arguments):
            return raw_input(arguments)
        case approvals.FileChangeSubject(changes=changes):
            return raw_input({"paths": [change.path for change in changes]})
        case _:
            return None


def raw_input(arguments: Any) -> Any:
    return cut_values(arguments, _INPUT_BYTES)


def printed(call_id: str, text: str) -> ToolCallChanged:
    """The end of what a running call has printed."""
    return ToolCallChanged(
        tool_call_id=call_id, status="in_progress", content=(words(fenced(text)),)
    )


def ended(result: events.ToolResult, kind: acp.ToolKind) -> ToolCallChanged:
    """A call that is over. What was refused, stopped or never run has failed; its text says how."""
    text = result.text
    shown: list[acp.ToolCallContent] = list(diffs(result.changes))
    if text and not (shown and result.status == "ok"):
        text = cut(text, _TEXT_BYTES)
        shown.insert(0, words(fenced(text) if kind in _PRINTED and result.status == "ok" else text))
    raw = {
        "status": result.status,
        "exitCode": result.exit_code,
        "durationMs": result.duration_ms,
        "truncated": result.truncated or None,
    }
    return ToolCallChanged(
        tool_call_id=result.call_id,
        status="completed" if result.status == "ok" else "failed",
        content=tuple(shown) or None,
        locations=_locations(result.locations),
        raw_output={key: value for key, value in raw.items() if value is not None},
    )


def words(text: str) -> acp.Content:
    return acp.Content(content=text_block(text))


def diffs(changes: Sequence[common.FileChange]) -> Iterator[acp.ToolCallContent]:
    """Changes as the texts before and after, each hunk of a diff on its own; as many as fit."""
    left = _DIFF_BYTES
    for number, change in enumerate(changes):
        for old, new in hunks(change.diff):
            left -= weight([change.path, old, new]) + _AROUND_BYTES
            if left < 0:
                yield words(_uncounted(changes[number:]))
                return
            new_file = change.operation == "create"
            yield acp.Diff(path=change.path, old_text=None if new_file else old, new_text=new)


def _uncounted(changes: Sequence[common.FileChange]) -> str:
    """Changes that are too much to be shown, or the rest of one."""
    first = changes[0]
    more = f", and {len(changes) - 1} more files" if len(changes) > 1 else ""
    return f"({first.path}: {first.added} lines added, {first.removed} removed{more})"


def hunks(diff: str) -> Iterator[tuple[str, str]]:
    """The text before and the text after, of each hunk of a unified diff."""
    for hunk in _HUNK.split(diff)[1:]:
        old: list[str] = []
        new: list[str] = []
        last: tuple[list[str], ...] = ()
        for line in _lines(hunk.removeprefix("\n")):
            match line[:1]:
                case "-":
                    last = (old,)
                case "+":
                    last = (new,)
                case " ":
                    last = (old, new)
                case "\\":
                    for side in last:
                        side[-1] = side[-1].removesuffix("\n")
                    continue
                case _:
                    continue
            for side in last:
                side.append(line[1:])
        yield "".join(old), "".join(new)


def _lines(text: str) -> Iterator[str]:
    """Lines with their ends; only ``\\n`` ends one, as in every diff."""
    *whole, rest = text.split("\n")
    yield from (line + "\n" for line in whole)
    if rest:
        yield rest


def _locations(found: Sequence[common.Location]) -> tuple[acp.ToolCallLocation, ...] | None:
    """Absolute paths, lines from 1; as many as fit."""
    left = _LOCATION_BYTES
    out: list[acp.ToolCallLocation] = []
    for each in found:
        left -= weight(each.path) + _AROUND_BYTES
        if left < 0:
            break
        if PurePath(each.path).is_absolute():
            line = each.line if each.line is None else max(1, each.line)
            out.append(acp.ToolCallLocation(path=each.path, line=line))
    return tuple(out) or None
