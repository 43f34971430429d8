"""What an agent has told of one of its tool calls, and what of that can be shown and judged. Pure.

Its kind, title and input come from the agent, which is not trusted with them: they say what it claims to do, and
that is all that a person, or a rule, can go by.
"""

import shlex
from collections.abc import Iterable
from typing import Any, Final, cast

import attrs
import orjson
from attrs import define, field

from callboard_rpc.approvals import CommandSubject, FileChangeSubject, Subject, ToolCallSubject
from callboard_rpc.common import FileChange, Json, Location
from callboard_rpc.common import ToolKind as Kind

from ...tools.base import Effect, Preview, Tool, ToolContext, ToolFailure, ToolOutcome
from ...tools.command import command_risk
from ...tools.diffs import file_change
from ...tools.display import clip, one_line, printable, well_formed
from ..contract import content, convert, tool_calls
from .commands import command_line

_EFFECTS: Final[dict[str, Effect]] = {
    "read": "read",
    "search": "read",
    "think": "read",
    "edit": "write",
    "delete": "write",
    "move": "write",
}
"""Whatever else it is may do anything."""

_OURS: Final[dict[str, str]] = {
    "read": "read_file",
    "search": "search_files",
    "edit": "edit_file",
    "delete": "edit_file",
    "move": "edit_file",
    "execute": "run_command",
}
"""The tool of ours that policy and rules know such a call by."""

RESULT_BYTES: Final = 256 * 1024
_DIFF_BYTES: Final = 2 * 1024 * 1024
"""Of larger files it is only said that they change."""
_PLACES = 50


@attrs.frozen(kw_only=True)
class _Claimed:
    """An agent's call has whatever arguments its agent likes."""


async def _not_ours(_: ToolContext, __: Any) -> ToolOutcome:
    raise ToolFailure("This call is its agent's to run.")


async def _unseen(_: ToolContext, __: Any) -> Preview:
    raise ToolFailure("This call is its agent's to run.")


@define(kw_only=True)
class ToldCall:
    """One call, as far as it was told. What an update leaves out stays as it was."""

    tool_call_id: str
    title: str = ""
    name: str | None = None
    kind: str | None = None
    status: str | None = None
    content: tuple[tool_calls.ToolCallContent, ...] = ()
    locations: tuple[tool_calls.ToolCallLocation, ...] = ()
    raw_input: Any = None
    raw_output: Any = None
    spelled: Json | None = None
    """Its input, for those who tell it as the text of a call that is pending."""
    question: str = ""
    """What is said when it is asked about, besides what is known of it."""
    printed: str = ""
    """What a terminal of the agent's own has printed, for those who tell that."""
    exit_code: int | None = None
    _streamed: str = ""
    _sizes: dict[str, int] = field(factory=dict[str, int])

    @property
    def weight(self) -> int:
        """About how many bytes are kept of it."""
        return len(self.printed) + sum(self._sizes.values())

    def merge(self, update: Any, size: int = 0) -> None:
        """Takes in a `ToolCall`, a `ToolCallChanged` or a `ToolCallUpdate`, of `size` bytes."""
        for name in ("content", "raw_input", "raw_output"):
            if getattr(update, name) is not None:
                self._sizes[name] = size
        for name in ("title", "name", "kind", "status", "locations", "raw_input"):
            value = getattr(update, name)
            if value is not None:
                setattr(self, name, value)
        if update.content is not None:
            self._brought(update.content, asked=isinstance(update, tool_calls.ToolCallUpdate))
        if update.raw_output is not None:
            self.raw_output = update.raw_output
        meta: Json = update.meta or {}
        printed, left = meta.get("terminal_output"), meta.get("terminal_exit")
        if isinstance(printed, dict):
            data = cast("dict[str, Any]", printed).get("data")
            if isinstance(data, str):
                self.printed = (self.printed + data)[-4 * RESULT_BYTES :]
        if isinstance(left, dict):
            code = cast("dict[str, Any]", left).get("exit_code")
            self.exit_code = code if type(code) is int else self.exit_code

    def _brought(self, parts: tuple[tool_calls.ToolCallContent, ...], *, asked: bool) -> None:
        """A question's texts are for whoever answers it, and no output of the call."""
        if asked:
            texts = [
                text_of(each.content) for each in parts if isinstance(each, tool_calls.Content)
            ]
            self.question = "\n".join(text for text in texts if text)
            parts = tuple(each for each in parts if not isinstance(each, tool_calls.Content))
            if not parts:
                return
        self.content = parts
        if self._waits and self.raw_input is None:
            self.spelled = _spelled(parts) or self.spelled

    @property
    def _waits(self) -> bool:
        """It has not begun, and so has printed nothing."""
        return self.status in (None, "pending")

    # --- what it is ---

    @property
    def our_kind(self) -> Kind:
        known = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch")
        return cast("Kind", self.kind) if self.kind in known else "other"

    @property
    def effect(self) -> Effect:
        return _EFFECTS.get(self.kind or "", "execute")

    @property
    def shown_name(self) -> str:
        """What it is called in the log: by its agent, else by its kind."""
        return one_line(self.name or self.kind or "tool", 128) or "tool"

    @property
    def command(self) -> str | None:
        """The command line that it says it runs. Many agents' titles are that line and nothing else."""
        if self.kind != "execute":
            return None
        given: Any = self.arguments.get("command", self.arguments.get("cmd"))
        if isinstance(given, list):
            return command_line([w for w in cast("list[Any]", given) if isinstance(w, str)])
        if isinstance(given, str):
            more = self.arguments.get("args")
            words = cast("list[Any]", more) if isinstance(more, list) else []
            return given if not words else f"{given} {shlex.join(str(word) for word in words)}"
        return self.title or None

    @property
    def arguments(self) -> Json:
        raw = self.raw_input
        if isinstance(raw, dict):
            return {str(key): value for key, value in cast("dict[Any, Any]", raw).items()}
        if raw is None:
            return dict(self.spelled or {})
        return {"input": raw}

    @property
    def paths(self) -> tuple[str, ...]:
        """Files that it says it touches: those of its diffs, and those that it names."""
        named = [each.path for each in self._diffs()] + [each.path for each in self.locations]
        for key in ("path", "file_path", "filePath", "filepath", "abs_path"):
            value = self.arguments.get(key)
            if isinstance(value, str) and value:
                named.append(value)
        return tuple(dict.fromkeys(path for path in named if path.startswith("/")))[:_PLACES]

    @property
    def diffs(self) -> list[tool_calls.Diff]:
        """The changes that it tells, as many as are shown."""
        return self._diffs()[:_PLACES]

    def _diffs(self) -> list[tool_calls.Diff]:
        return [each for each in self.content if isinstance(each, tool_calls.Diff)]

    @property
    def changes(self) -> tuple[FileChange, ...]:
        return tuple(_change(each) for each in self.diffs)

    @property
    def places(self) -> tuple[Location, ...]:
        """Where it says it is, for those who follow it."""
        named = {each.path: each.line for each in self.locations[:_PLACES]}
        return tuple(Location(path=path, line=named.get(path) or None) for path in self.paths)

    # --- what is judged and shown ---

    def tool(self) -> Tool:
        """What policy judges: ours, where the call is of such a kind and says enough; else one of its own name."""
        says_enough = self.command is not None if self.kind == "execute" else bool(self.paths)
        name = _OURS.get(self.kind or "") if says_enough else None
        return Tool(
            name=name or self.shown_name,
            description="",
            arguments=_Claimed,
            effect=self.effect,
            kind=self.our_kind,
            run=_not_ours,
            preview=_unseen,
        )

    def preview(self, cwd: str, paths: Iterable[str]) -> Preview:
        """What a person is shown; `paths` are those that it touches, resolved."""
        command = self.command
        changes = self.changes
        subject: Subject
        if command is not None:
            subject = CommandSubject(command=printable(command), cwd=printable(self._cwd(cwd)))
        elif changes:
            subject = FileChangeSubject(changes=changes)
        else:
            subject = ToolCallSubject(
                name=self.shown_name, arguments=self.arguments, locations=self.places
            )
        return Preview(
            title=self.shown_title,
            subject=subject,
            locations=self.places,
            command=command,
            paths=tuple(paths),
            risk="medium" if command is None else command_risk(command),
        )

    def _cwd(self, cwd: str) -> str:
        given = self.arguments.get("cwd", self.arguments.get("workdir"))
        return given if isinstance(given, str) and given.startswith("/") else cwd

    def working_folder(self, cwd: str) -> str:
        """Where its command runs."""
        return self._cwd(cwd)

    @property
    def shown_title(self) -> str:
        says_nothing = not (self.arguments or self.paths or self.content)
        title = self.question if self.question and says_nothing else self.title
        return one_line(title, 200) or self.shown_name

    # --- what came of it ---

    @property
    def text(self) -> str:
        """What it has brought so far."""
        parts: list[str] = []
        for each in self.content:
            if isinstance(each, tool_calls.Content):
                parts.append(text_of(each.content))
        text = "\n".join(part for part in parts if part)
        return text or self.printed or _raw_text(self.raw_output)

    @property
    def live(self) -> str:
        """What of it is told while it runs."""
        if self._waits or _spelled(self.content) == self.arguments:
            return self.printed
        return (
            "".join(
                text_of(each.content)
                for each in self.content
                if isinstance(each, tool_calls.Content)
            )
            or self.printed
        )

    def news(self) -> str:
        """What it has brought since it was last asked for. Most agents tell all of it each time, some only what is
        new."""
        now = self.live
        if now == self._streamed:
            return ""
        new = now.removeprefix(self._streamed) if now.startswith(self._streamed) else now
        self._streamed = now
        return new

    def outcome(self) -> ToolOutcome:
        """How a call that is over has ended, by its agent."""
        clipped = clip(well_formed(self.text), RESULT_BYTES)
        return ToolOutcome(
            text=clipped.text or "(no output)",
            status="ok" if self.status == "completed" else "error",
            changes=self.changes if self.status == "completed" else (),
            locations=self.places,
            exit_code=self.exit_code,
            truncated=clipped.truncated,
        )


def size_of(update: tool_calls.ToolCallUpdate) -> int:
    """About how many bytes what a question tells of its call has."""
    return len(orjson.dumps(convert.unstructure(update), default=repr))


def _spelled(parts: Iterable[Any]) -> Json | None:
    """The object that the one text of a call is, if it is one."""
    match tuple(parts):
        case (tool_calls.Content(content=content.TextContent(text=text)),) if text[:1] == "{":
            try:
                value = orjson.loads(text)
            except orjson.JSONDecodeError:
                return None
            return cast("Json", value) if isinstance(value, dict) else None
        case _:
            return None


def text_of(block: Any) -> str:
    """A content block as text."""
    match block:
        case content.TextContent(text=text):
            return text
        case content.ResourceLink(uri=uri, name=name):
            return f"[{name}]({uri})"
        case content.EmbeddedResource(resource=content.TextResourceContents(text=text)):
            return text
        case content.ImageContent(mime_type=mime_type):
            return f"[image, {mime_type}]"
        case content.AudioContent(mime_type=mime_type):
            return f"[audio, {mime_type}]"
        case _:
            return ""


def _raw_text(raw: Any) -> str:
    match raw:
        case None:
            return ""
        case str():
            return raw
        case (
            {"output": str() as text}
            | {"formatted_output": str() as text}
            | {"aggregated_output": str() as text}
            | {"error": str() as text}
        ):
            return text
        case _:
            try:
                return orjson.dumps(raw, option=orjson.OPT_INDENT_2).decode()
            except (TypeError, orjson.JSONEncodeError):
                return str(raw)


def _change(diff: tool_calls.Diff) -> FileChange:
    if len(diff.new_text) + len(diff.old_text or "") > _DIFF_BYTES:
        operation = "create" if diff.old_text is None else "modify"
        return FileChange(
            path=diff.path, operation=operation, diff="", added=0, removed=0, truncated=True
        )
    return file_change(diff.path, diff.old_text, well_formed(diff.new_text))
