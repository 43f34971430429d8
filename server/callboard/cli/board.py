"""The task board of a group as text: tasks by how they stand, who has them, and what is in the way."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from attrs import frozen
from rich.text import Text

from callboard_client.terminal_text import clean_line
from callboard_rpc.groups import DependencyFailure, Group, GroupConflict, GroupMember, GroupTask
from callboard_rpc.sessions import Session

from .naming import TASKS, short_names
from .terminal import line
from .wording import plural

_TEXT = 120
_TITLE = 40
"""Characters of the title of another task."""
_NAMED = 4
"""How many other tasks a line names."""
_LATEST = 5
"""How many tasks that are over are shown where room is scarce."""

_SECTIONS = ("ready", "waiting", "active", "blocked", "completed", "cancelled")
_STYLES = {
    "ready": "bold green",
    "waiting": "dim",
    "active": "bold cyan",
    "blocked": "bold red",
    "completed": "green",
    "cancelled": "dim",
}
_OVER = ("completed", "cancelled")
_AT_WORK = (None, "starting", "running")
"""What a member is while it may go on by itself: the root has no status of an agent."""
_STATUS_STYLES = {"running": "cyan", "failed": "bold red", "interrupted": "yellow"}


@frozen(kw_only=True)
class Board:
    """A group and all its tasks, read one after the other: where they differ, what the group says counts,
    and a task that it does not know yet waits for the next look."""

    session: Session
    group: Group | None
    tasks: tuple[GroupTask, ...] = ()

    def lines(self, rows: int | None = None) -> list[Text]:
        """The board, a line each; of a long one as much of each kind as `rows` lines have room for."""
        if self.group is None:
            return [_title(self.session), *_none_yet(self.session)]
        sheet = _Sheet.of(self.group, self.tasks)
        full = [_title(self.session), *_head(self.group), *sheet.lines(None)]
        if rows is None or len(full) <= rows:
            return full
        head = [_title(self.session), *_head(self.group)]
        for most in range(_LATEST, 0, -1):
            cut = [*head, *sheet.lines(most)]
            if len(cut) <= rows:
                return cut
        return [*head, *sheet.lines(1)]


def task_line(task: GroupTask, owner: str | None) -> Text:
    """A task after something was done to it, with the whole of its id."""
    kind = _kind(task)
    shown = line((task.task_id, "bold"), "  ", (_status(task), _STYLES[kind]), f"  {task.title}")
    if owner is not None and task.assignee is not None:
        shown.append_text(line((f" · {clean_line(owner, 40)}", "magenta")))
    return shown


def owner_of(group: Group | None, task: GroupTask) -> str | None:
    """What the owner of a task is called."""
    if task.assignee is None:
        return None
    return _names(group).get(task.assignee, task.assignee) if group else task.assignee


# --- its head ---------------------------------------------------------------------------------------


def _title(session: Session) -> Text:
    title = f'  "{clean_line(session.title, 60)}"' if session.title else ""
    return line((session.session_id, "bold"), title)


def _none_yet(session: Session) -> list[Text]:
    words = "It has no task board yet. One comes to be with its first task or message:"
    command = f'callboard group {session.session_id} create "What is to be done"'
    return [line((words, "dim")), line((f"  {command}", "dim"))]


def _head(group: Group) -> list[Text]:
    counts = group.counts
    parts = {
        "ready": counts.ready,
        "waiting": counts.pending - counts.ready,
        "active": counts.claimed + counts.in_progress,
        "blocked": counts.blocked,
        "completed": counts.completed,
        "cancelled": counts.cancelled,
    }
    told = ", ".join(f"{count} {kind}" for kind, count in parts.items() if count)
    unfinished = len(group.required_unfinished)
    if unfinished:
        gate = (f"  {plural(unfinished, 'required task')} not done", "yellow")
    elif counts.total:
        gate = ("  all that is required is done", "green")
    else:
        gate = ""
    return [
        line(
            (clean_line(group.name, 64), "bold cyan"),
            f"  {plural(counts.total, 'task')}" + (f": {told}" if told else ""),
            gate,
        ),
        _members(group),
    ]


def _members(group: Group) -> Text:
    shown = line(("members  ", "dim"))
    for number, member in enumerate(group.members):
        status = member.status
        shown.append_text(line(", " if number else "", clean_line(member.name, 40)))
        if status is not None:
            shown.append_text(line((f" ({status})", _STATUS_STYLES.get(status, "dim"))))
    return shown


# --- its tasks --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class _Sheet:
    """The tasks by their kinds, and what is to be said of each beside its own."""

    by_kind: Mapping[str, Sequence[GroupTask]]
    called: Mapping[str, str]
    """Tasks by as much of their ids as tells them apart."""
    titles: Mapping[str, str]
    members: Mapping[str, GroupMember]
    failures: Mapping[str, Sequence[DependencyFailure]]
    conflicts: Mapping[str, Sequence[GroupConflict]]

    @classmethod
    def of(cls, group: Group, tasks: Sequence[GroupTask]) -> "_Sheet":
        by_kind: defaultdict[str, list[GroupTask]] = defaultdict(list)
        for task in tasks:
            by_kind[_kind(task)].append(task)
        ids = [task.task_id for task in tasks]
        short = short_names([each.removeprefix(TASKS.prefix) for each in ids])
        failures: defaultdict[str, list[DependencyFailure]] = defaultdict(list)
        for failure in group.dependency_failures:
            failures[failure.task_id].append(failure)
        conflicts: defaultdict[str, list[GroupConflict]] = defaultdict(list)
        for conflict in group.conflicts:
            for task_id in conflict.task_ids:
                conflicts[task_id].append(conflict)
        return cls(
            by_kind=by_kind,
            called=dict(zip(ids, short, strict=True)),
            titles={task.task_id: task.title for task in tasks},
            members={each.agent_id: each for each in group.members},
            failures=failures,
            conflicts=conflicts,
        )

    def lines(self, most: int | None) -> list[Text]:
        """All sections that have something in them; `most` bounds each, and says how many there are."""
        shown: list[Text] = []
        for kind in _SECTIONS:
            tasks = self.by_kind.get(kind, ())
            if not tasks:
                continue
            shown.append(line((f"{kind} ({len(tasks)})", _STYLES[kind])))
            left_out = 0 if most is None else max(len(tasks) - most, 0)
            # of those that are over, the latest tell more than the first
            kept = tasks[left_out:] if kind in _OVER else tasks[: len(tasks) - left_out]
            for task in kept:
                shown += self._task(task)
            if left_out:
                shown.append(line((f"  {left_out} more", "dim")))
        return shown

    def _task(self, task: GroupTask) -> list[Text]:
        kind = _kind(task)
        head = line(
            (f"  {self._id(task.task_id)}", "bold"),
            f"  {clean_line(task.title, _TEXT)}",
            ("" if task.required else "  optional", "dim"),
            ("  in progress" if task.status == "in_progress" else "", "cyan"),
            (f" · {self._owner(task)}" if task.assignee else "", "magenta"),
        )
        return [head, *(line("    ", part) for part in self._details(task, kind))]

    def _details(self, task: GroupTask, kind: str) -> list[tuple[str, str]]:
        """What is in its way, or what came of it, a line each with its style."""
        details: list[tuple[str, str]] = []
        failures = self.failures.get(task.task_id, ())
        failed = {each.dependency_id for each in failures}
        blockers = [each for each in task.blockers if each not in failed]
        if blockers and kind not in _OVER:
            details.append((f"waits for {self._named(blockers)}", "dim"))
        for failure in failures[:_NAMED]:
            what = f"{self._other(failure.dependency_id)} is {failure.status}"
            details.append((f"! {what}: this never becomes ready by itself", "yellow"))
        if kind == "active" and (resting := self._resting(task)):
            details.append((resting, "yellow"))
        for conflict in self.conflicts.get(task.task_id, ())[:_NAMED]:
            other = next((each for each in conflict.task_ids if each != task.task_id), "another")
            path = clean_line(conflict.path, _TEXT)
            details.append((f"! {self._other(other)} changes {path}, too", "yellow"))
        said = task.reason if kind in ("blocked", "cancelled") else task.summary
        if said and kind in ("blocked", *_OVER):
            details.append((clean_line(said, _TEXT), "red" if kind == "blocked" else "dim"))
        return details

    def _named(self, ids: Sequence[str]) -> str:
        more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
        return ", ".join(map(self._other, ids[:_NAMED])) + more

    def _id(self, task_id: str) -> str:
        return self.called.get(task_id, task_id)

    def _other(self, task_id: str) -> str:
        """Another task, by what one types and what it is."""
        title = self.titles.get(task_id)
        return self._id(task_id) + (f' "{clean_line(title, _TITLE)}"' if title else "")

    def _resting(self, task: GroupTask) -> str | None:
        """That nobody is at an active task, and what can be done."""
        member = self.members.get(task.assignee or "")
        if member is None or member.status in _AT_WORK:
            return None
        name = clean_line(member.name, 40)
        if member.status == "closed":
            return f"! {name} is closed: assign it to another"
        return (
            f"! {name} is not at work ({member.status}): continue {name}, or assign it to another"
        )

    def _owner(self, task: GroupTask) -> str:
        member = self.members.get(task.assignee or "")
        return clean_line(member.name if member else task.assignee or "", 40)


def _names(group: Group | None) -> dict[str, str]:
    return {} if group is None else {each.agent_id: each.name for each in group.members}


def _kind(task: GroupTask) -> str:
    """The section that a task is in."""
    match task.status:
        case "pending":
            return "ready" if task.ready else "waiting"
        case "claimed" | "in_progress":
            return "active"
        case status:
            return status


def _status(task: GroupTask) -> str:
    return _kind(task) if task.status == "pending" else task.status.replace("_", " ")
