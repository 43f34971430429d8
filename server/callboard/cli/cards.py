"""What is shown of tool calls, diffs, plans and questions."""

from typing import Any, cast

import orjson
from rich.text import Text

from callboard_client.terminal_text import clean, clean_line
from callboard_rpc.approvals import (
    Approval,
    CommandSubject,
    FileChangeSubject,
    FormSubject,
    ToolCallSubject,
)
from callboard_rpc.common import FileChange, Json
from callboard_rpc.events import Notice, PlanUpdated, ToolCall, ToolResult

from .terminal import block, line
from .wording import NOTICE_MARKS, STATUS_MARKS, duration, plural

_TAIL_LINES = 8
_DIFF_LINES = 40
_QUESTION_DIFF_LINES = 400
_PLAN_MARKS = {"pending": ("☐", ""), "in_progress": ("◐", "cyan"), "completed": ("☑", "green")}
_RISK_STYLES = {"low": "green", "medium": "yellow", "high": "bold red"}


def call_line(call: ToolCall) -> Text:
    """A call that runs."""
    return line(("⋯ ", "cyan"), call.title or call.name)


def result_line(call: ToolCall | None, result: ToolResult) -> Text:
    """A call that has ended: how, what, and how long it took."""
    mark, style = STATUS_MARKS.get(result.status, ("?", "yellow"))
    title = (call.title if call else "") or result.name
    text = line((f"{mark} ", style), title)
    if result.status != "ok":
        text.append_text(line((f"  {result.status.replace('_', ' ')}", style)))
    if result.exit_code is not None:
        text.append_text(line((f"  exit {result.exit_code}", "dim")))
    if result.changes:
        added = sum(change.added for change in result.changes)
        removed = sum(change.removed for change in result.changes)
        text.append_text(line((f"  +{added}", "green"), (f" -{removed}", "red")))
    if result.duration_ms is not None:
        text.append_text(line((f"  {duration(result.duration_ms)}", "dim")))
    return text


def result_details(call: ToolCall | None, result: ToolResult, *, with_diff: bool) -> list[Text]:
    """What stands below the line: diff, end of the output, or why it did not work."""
    if result.changes:
        return diffs(result.changes, _DIFF_LINES) if with_diff else []
    if call is not None and call.kind == "execute":
        return [tail(result.text)] if result.text.strip() else []
    if result.status != "ok":
        return [block(clean_line(result.text, 300), "dim", indent="    ")]
    return []


def tail(output: str) -> Text:
    """The last lines of what a command printed."""
    lines = clean(output).rstrip("\n").split("\n")
    left_out = len(lines) - _TAIL_LINES
    shown = lines[-_TAIL_LINES:]
    if left_out > 1:
        shown = [f"… {plural(left_out, 'line')} above", *shown]
    return block("\n".join(shown), "dim", indent="    ")


def diffs(changes: tuple[FileChange, ...], limit: int) -> list[Text]:
    """Each file's diff in colour, at most `limit` lines of each."""
    shown: list[Text] = []
    for change in changes:
        renamed = f"{change.old_path} → " if change.old_path else ""
        shown.append(line((f"    {change.operation} ", "bold"), f"{renamed}{change.path}"))
        shown.append(diff(change.diff, limit))
        if change.truncated:
            shown.append(line(("    … the diff is longer than what is shown", "dim")))
    return shown


def diff(text: str, limit: int) -> Text:
    lines = clean(text).rstrip("\n").split("\n")
    body = [each for each in lines if not each.startswith(("--- ", "+++ "))]
    shown = Text()
    for number, each in enumerate(body[:limit]):
        shown.append(("\n" if number else "") + "    " + each, _diff_style(each))
    if len(body) > limit:
        shown.append(f"\n    … {plural(len(body) - limit, 'more line')}", "dim")
    return shown


def _diff_style(each: str) -> str:
    match each[:1]:
        case "+":
            return "green"
        case "-":
            return "red"
        case "@":
            return "cyan"
        case _:
            return "dim"


def plan(update: PlanUpdated) -> list[Text]:
    shown = [line(("Plan", "bold"))]
    for entry in update.entries:
        mark, style = _PLAN_MARKS.get(entry.status, ("☐", ""))
        shown.append(line((f"  {mark} ", style), (entry.content, style)))
    return shown


def notice(told: Notice, label: str) -> list[Text]:
    """What a person should know of the agent called `label`, or of the session where that is empty."""
    mark, style = NOTICE_MARKS[told.severity]
    head = line((f"{mark}: ", style), f"{label}: " if label else "", told.title)
    if told.description is None or not told.description.strip():
        return [head]
    return [head, block(told.description, "dim", indent="    ")]


def question(approval: Approval) -> list[Text]:
    """All that a person needs to answer, but for the options."""
    asker = " › ".join(clean_line(step.name) for step in approval.path[1:])
    head = line(
        ("? ", "bold yellow"),
        (f"{asker}: " if asker else "", "bold"),
        (approval.title, "bold"),
        (f"  {approval.risk} risk", _RISK_STYLES.get(approval.risk, "")),
    )
    shown = [head, *_subject(approval)]
    if approval.reason:
        shown.append(block(approval.reason, "dim", indent="    "))
    return shown


def _subject(approval: Approval) -> list[Text]:
    match approval.subject:
        case CommandSubject(command=command, cwd=cwd):
            return [block(f"$ {command}", "bold", indent="    "), line((f"    in {cwd}", "dim"))]
        case FileChangeSubject(changes=changes):
            return diffs(changes, _QUESTION_DIFF_LINES)
        case ToolCallSubject(name=name, arguments=arguments):
            written = orjson.dumps(arguments, option=orjson.OPT_INDENT_2).decode()
            return [line(f"    {name}"), block(written, "dim", indent="    ")]
        case FormSubject(message=message, schema=schema):
            return [block(message, indent="    "), *_fields(schema)]


def _fields(schema: Json) -> list[Text]:
    """The fields of a form, each with what is known of it."""
    fields: Any = schema.get("properties")
    if not isinstance(fields, dict):
        return []
    required: Any = schema.get("required") or ()
    shown: list[Text] = []
    for name, about in cast("Json", fields).items():
        told = cast("Json", about) if isinstance(about, dict) else {}
        values = cast("Json", told.get("items") or told).get("enum") or ()
        words = [
            str(told.get("type", "anything")),
            *(["required"] if name in required else []),
            *([f"one of {', '.join(map(str, values))}"] if values else []),
            *([str(told["description"])] if told.get("description") else []),
        ]
        shown.append(line(("    " + clean_line(name), "bold"), ("  " + "; ".join(words), "dim")))
    return shown


def rule_line(rule_id: str) -> Text:
    """What a standing answer has made, and how to take it back."""
    revoke = f"callboard rules remove {rule_id}"
    return line(("    a standing rule was made; to revoke it: ", "dim"), (revoke, "dim bold"))


def options(approval: Approval) -> list[Text]:
    """The options behind the keys that choose them."""
    return [
        line(
            (f"    {number} ", "bold"),
            (option.name, "green" if option.kind.startswith("allow") else "red"),
        )
        for number, option in enumerate(approval.options, 1)
    ]
