"""One task of a board, with all that is known of it."""

from collections.abc import Mapping, Sequence

from rich.text import Text

from callboard_rpc.groups import Group, GroupTask

from .board import owner_of, task_line
from .terminal import block, line
from .wording import local_time

_INDENT = " " * 11


def card(task: GroupTask, group: Group | None, tasks: Sequence[GroupTask]) -> list[Text]:
    """A task of `tasks`: what it is, what it waits for, and what came of it, each where there is any."""
    known = {str(each.task_id): each for each in tasks}
    shown = [task_line(task, owner_of(group, task))]
    facts: list[tuple[str, str]] = [
        ("optional", "" if task.required else "the work is complete without it, too"),
        ("about", task.description),
        *_several("after", [_other(each, known) for each in task.dependencies]),
        *_several("path", task.expected_paths),
        ("created", local_time(task.created_at)),
        ("changed", local_time(task.updated_at)),
        ("summary", task.summary or ""),
        ("reason", task.reason or ""),
        *_several("finding", task.findings),
        *_several("file", task.touched_files),
    ]
    for name, value in facts:
        if value.strip():
            text = block(value, indent=_INDENT)
            shown.append(line((f"{name:>9}  ", "dim")).append_text(text[len(_INDENT) :]))
    return shown


def _several(name: str, values: Sequence[str]) -> list[tuple[str, str]]:
    """A name, and below each other what has it."""
    return [(name if number == 0 else "", value) for number, value in enumerate(values)]


def _other(task_id: str, known: Mapping[str, GroupTask]) -> str:
    task = known.get(task_id)
    return task_id if task is None else f"{task_id}  {task.status.replace('_', ' ')}  {task.title}"
