"""A session as Markdown for people: pure, one event at a time.

Text of models, tools and files stands in fences that it cannot close; names and titles are escaped,
so that they stay what they are: names and titles.
"""

import re
from collections.abc import Mapping

from attrs import frozen

from callboard_rpc.approvals import Resolution
from callboard_rpc.common import (
    EmbeddedResource,
    FileChange,
    ImageContent,
    MessageContent,
    ResourceLink,
    TextContent,
    Usage,
)
from callboard_rpc.events import (
    ApprovalDecision,
    Author,
    CompletionChanged,
    DeliveriesDropped,
    Directive,
    EventData,
    GroupMessageQueued,
    GroupTaskClaimed,
    GroupTaskCreated,
    GroupTaskReleased,
    GroupTaskStatusChanged,
    MemberAdded,
    MemberRemoved,
    Message,
    ModeChanged,
    ModelChanged,
    Notice,
    PeerLinked,
    PeerMessageDropped,
    PeerMessageSent,
    PeerUnlinked,
    PlanUpdated,
    PromptUpdated,
    RoomHostChanged,
    ScheduleFired,
    SessionForked,
    SessionRewound,
    Summary,
    ToolCall,
    ToolResult,
    TriggersDropped,
    TurnFinished,
    UnknownData,
    WakeSuppressed,
)
from callboard_rpc.sessions import Session

_SPECIAL = re.compile(r"([\\`*{}\[\]<>#|~]|(?<!\w)_|_(?!\w))")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$")
_SEVERITIES = {"info": "Note", "warning": "Warning", "error": "Error"}
_BOXES = {"completed": "[x]", "in_progress": "[ ]", "pending": "[ ]"}


def heading(session: Session, model: str | None) -> str:
    """What stands above the conversation. `model` is the one that is used, if that is known."""
    facts = {
        "Folder": session.cwd,
        "Begun": _date(session.created_at),
        "Last change": _date(session.updated_at),
        "Agent": f"{', '.join(session.members) or session.profile}, mode {session.mode}",
        "Model": model or "",
        "Usage": _usage(session.usage),
        "Waits for": _waiting(session.pending_approvals),
        "Session": session.session_id,
    }
    lines = [f"- {name}: {inline(value)}" for name, value in facts.items() if value]
    return (
        f"# {inline(session.title or 'A session without a title')}\n\n" + "\n".join(lines) + "\n\n"
    )


@frozen(kw_only=True)
class Known:
    """What events may be about, by its id: tool calls, and the titles of tasks of a group."""

    calls: Mapping[str, ToolCall]
    tasks: Mapping[str, str]


def section(data: EventData | UnknownData, known: Known) -> str:
    """What is shown of an event; nothing of most."""
    calls = known.calls
    match data:
        case Message() as message:
            return _message(message)
        case Directive(author=author, text=text):
            return f"## {_speaker(author)} (directive)\n\n{_closed(text)}\n\n"
        case ScheduleFired(name=name, prompt=prompt):
            return f"## Schedule {inline(name)}\n\n{_closed(prompt)}\n\n"
        case Summary(text=text):
            return f"## Summary of the conversation so far\n\n{_closed(text)}\n\n"
        case ToolResult() as result:
            return _result(result, calls.get(result.call_id))
        case ApprovalDecision(call_id=call_id, resolution=resolution):
            return _decision(resolution, calls.get(call_id))
        case PlanUpdated(entries=entries):
            lines = [
                f"- {_BOXES.get(entry.status, '[ ]')} {inline(entry.content)}"
                + (" (in progress)" if entry.status == "in_progress" else "")
                for entry in entries
            ]
            return "**Plan**\n\n" + "\n".join(lines) + "\n\n"
        case Notice(severity=severity, title=title, description=description):
            said = (inline(title), inline(description or ""))
            return _aside(f"{_SEVERITIES[severity]}: {' — '.join(filter(None, said))}")
        case ModeChanged(mode=mode):
            return _aside(f"The mode is now {inline(mode)}.")
        case ModelChanged(model=model):
            return _aside(f"The model is now {inline(model or 'the default')}.")
        case TriggersDropped(seqs=seqs, reason=reason) if seqs:
            return _aside(f"Waiting prompts were dropped: {inline(reason)}")
        case PromptUpdated(content=content):
            shown = "\n\n".join(part for each in content if (part := _content(each)))
            return f"## Person (instead of a prompt that waited)\n\n{shown}\n\n"
        case SessionForked(forked_from=origin):
            return _aside(f"All above was taken over from {inline(origin.session_id)}.") + "---\n\n"
        case SessionRewound() as rewind:
            return _rewind(rewind)
        case DeliveriesDropped(deliveries=deliveries, reason=reason):
            return _aside(f"{len(deliveries)} deliveries were dropped: {inline(reason)}")
        case TurnFinished() as end:
            return _end(end)
        case CompletionChanged(summary=summary):
            return _aside(_with("All is implemented, and nobody has verified it", summary))
        case GroupMessageQueued(sender=sender, to=to, text=text):
            return _aside(f"{inline(sender)} to the {inline(to)}: {inline(text)}")
        case MemberAdded() | MemberRemoved() | RoomHostChanged() | WakeSuppressed():
            return _of_room(data)
        case PeerLinked() | PeerUnlinked() | PeerMessageSent() | PeerMessageDropped():
            return _of_link(data)
        case _:
            return _of_task(data, known.tasks)


# --- its parts ----------------------------------------------------------------------------------------


def _message(message: Message) -> str:
    parts = [shown for each in message.content if (shown := _content(each))]
    if not parts:
        return ""
    if message.author.kind == "peer":  # what has a frame for the model has one for people, too
        parts = [fenced(each.text) for each in message.content if isinstance(each, TextContent)]
    if message.partial:
        parts.append("*(cut off)*")
    return f"## {_speaker(message.author)}\n\n" + "\n\n".join(parts) + "\n\n"


def _content(content: MessageContent) -> str:
    match content:
        case TextContent(text=text):
            return _closed(text.strip("\n")) if text.strip() else ""
        case ImageContent(mime_type=mime_type):
            return f"*(an image, {inline(mime_type)})*"
        case ResourceLink(uri=uri, name=name):
            return f"*(attached: {inline(name or uri)})*"
        case EmbeddedResource(uri=uri):
            return f"*(attached: {inline(uri)})*"
        case _:
            return ""


def _speaker(author: Author) -> str:
    """A person's `name` is that of the program in which the prompt was written."""
    match author.kind:
        case "person":
            return "Person"
        case "agent":
            return "Agent" if author.name == "default" else inline(author.name)
        case kind:
            return f"{inline(author.name)} ({kind})"


def _result(result: ToolResult, call: ToolCall | None) -> str:
    if call is not None and call.kind == "think" and result.status == "ok":
        return ""  # what it changed is an event of its own
    title = (call.title if call is not None else "") or result.name
    words = [inline(result.name)] if title != result.name else []
    if result.status != "ok":
        words.append(result.status.replace("_", " "))
    if result.exit_code is not None:
        words.append(f"exit {result.exit_code}")
    about = f" ({', '.join(words)})" if words else ""
    body = "".join(map(_change, result.changes))
    if not body and result.text.strip():
        body = fenced(result.text)
    return f"**{inline(title)}**{about}\n\n{body}"


def _change(change: FileChange) -> str:
    renamed = f"{inline(change.old_path)} → " if change.old_path else ""
    head = f"{change.operation} {renamed}{inline(change.path)}, +{change.added} -{change.removed}"
    cut = ", cut short" if change.truncated else ""
    return f"{head}{cut}\n\n{fenced(change.diff, 'diff') if change.diff.strip() else ''}"


def _decision(resolution: Resolution, call: ToolCall | None) -> str:
    title = f"{inline(call.title or call.name)}: " if call is not None else ""
    how = f" ({inline(resolution.option_id)})" if resolution.option_id else ""
    by = inline(resolution.by.name or resolution.by.id)
    parts = [f"Approval: {title}{resolution.outcome}{how} by {by}"]
    if resolution.rule_id is not None:
        parts.append(f"made the rule {inline(resolution.rule_id)}")
    said = resolution.feedback or resolution.reason
    return _aside("; ".join(parts) + (f": {inline(said)}" if said else "."))


def _rewind(rewind: SessionRewound) -> str:
    turns = "the last turn" if rewind.turns == 1 else f"the last {rewind.turns} turns"
    parts = [f"The session was rewound: {turns} above, and what was said in them, count no longer."]
    if rewind.changed_paths:
        paths = ", ".join(map(inline, rewind.changed_paths))
        more = f" and {rewind.more_paths} more" if rewind.more_paths else ""
        parts.append(f"The files that they changed were left as they are: {paths}{more}.")
    return _aside(" ".join(parts))


def _of_room(data: MemberAdded | MemberRemoved | RoomHostChanged | WakeSuppressed) -> str:
    match data:
        case MemberAdded(name=name):
            return _aside(f"{inline(name)} takes part from here on.")
        case MemberRemoved(name=name):
            return _aside(f"{inline(name)} takes no part any more.")
        case RoomHostChanged(name=name):
            return _aside(f"{inline(name or 'The first member')} answers when nobody is addressed.")
        case WakeSuppressed(name=name, by=by, burst=burst):
            said = "1 message" if burst == 1 else f"{burst} messages"
            return _aside(
                f"{inline(name)} was not woken by {inline(by)}: agents have said {said} in a row."
            )


def _of_link(data: PeerLinked | PeerUnlinked | PeerMessageSent | PeerMessageDropped) -> str:
    match data:
        case PeerLinked(peer_id=peer_id):
            return _aside(f"Linked to the session {inline(peer_id)}.")
        case PeerUnlinked(peer_id=peer_id):
            return _aside(f"No longer linked to the session {inline(peer_id)}.")
        case PeerMessageSent(to=to, text=text):
            return _aside(f"To the session {inline(to)}: {inline(text)}")
        case PeerMessageDropped(sender=sender, reason=reason):
            return _aside(f"A message of {inline(sender or 'a session')} was dropped: {reason}.")


def _of_task(data: EventData | UnknownData, titles: Mapping[str, str]) -> str:
    """What happened to a task of the group; nothing of another event."""
    said = ""
    match data:
        case GroupTaskCreated() as made:
            optional = "" if made.required else " (optional)"
            return _aside(_with(f"Task: {inline(made.title)}{optional}", made.description))
        case GroupTaskClaimed(task_id=task_id, agent_id=agent_id):
            what = f"claimed by {inline(agent_id)}"
        case GroupTaskReleased(task_id=task_id, agent_id=agent_id):
            what = f"given back by {inline(agent_id)}"
        case GroupTaskStatusChanged(task_id=task_id, assignee=str() as assignee):
            what = f"given to {inline(assignee)}"
        case GroupTaskStatusChanged(task_id=task_id) as change:
            what = f"{change.status.replace('_', ' ')} by {inline(change.agent_id)}"
            said = "; ".join((change.summary or change.reason or "", *change.findings))
        case _:
            return ""
    return _aside(_with(f"Task {inline(titles.get(task_id, task_id))}: {what}", said))


def _with(what: str, said: str) -> str:
    """`what`, and what was said with it."""
    return f"{what}: {inline(said)}" if said.strip() else f"{what}."


def _end(end: TurnFinished) -> str:
    words = [f"The turn ended: {end.outcome.replace('_', ' ')}"]
    if end.duration_ms is not None:
        ms = end.duration_ms
        words.append(f"{ms} ms" if ms < 1000 else f"{ms / 1000:.1f} s")
    if spent := _usage(end.usage):
        words.append(spent)
    why = f" — {inline(end.error.message)}" if end.error is not None else ""
    return f"*{' · '.join(words)}*{why}\n\n---\n\n"


# --- words ----------------------------------------------------------------------------------------


def fenced(text: str, language: str = "") -> str:
    """`text` as a code block, whatever fences it holds itself."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}\n\n"


def _closed(text: str) -> str:
    """Markdown that somebody else wrote, with an end to the code block that it leaves open: what
    follows must not become part of it."""
    opened = ""
    for each in text.split("\n"):
        found = _FENCE.match(each)
        if found is None:
            continue
        if not opened:
            opened = found[1]
        elif found[1].startswith(opened) and not found[2].strip():
            opened = ""
    return f"{text}\n{opened}" if opened else text


def inline(text: str) -> str:
    """`text` on one line, as nothing but text."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _aside(text: str) -> str:
    return f"> {text}\n\n"


def _waiting(approvals: int) -> str:
    return "" if not approvals else "1 approval" if approvals == 1 else f"{approvals} approvals"


def _date(at: str) -> str:
    """An RFC 3339 time in UTC to the minute."""
    return f"{at[:10]} {at[11:16]} UTC"


def _usage(usage: Usage | None) -> str:
    if usage is None:
        return ""
    parts: list[str] = []
    if usage.input_tokens is not None:
        parts.append(f"{usage.input_tokens:,} tokens in")
    if usage.output_tokens is not None:
        parts.append(f"{usage.output_tokens:,} tokens out")
    if usage.cost is not None:
        parts.append(f"{usage.cost:.4f} {usage.currency or ''}".strip())
    if usage.partial and parts:
        parts.append("not all reported")
    return ", ".join(parts)
