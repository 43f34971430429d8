"""`read_file`, `write_file`, `edit_file`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from attrs import field, frozen

from callboard_rpc.approvals import FileChangeSubject, Risk, ToolCallSubject
from callboard_rpc.common import FileChange, Location

from . import beneath, textfile
from .base import PathDenied, Preview, Tool, ToolContext, ToolFailure, ToolOutcome
from .diffs import file_change
from .display import clip, one_line, well_formed
from .edits import Edit, apply_edits
from .offload import finished
from .paths import denied_text, missing_text, resolved, system_text
from .schema import describe
from .textfile import NEW_FILE, TextFile, TextForm

SMALL_BYTES = 256 * 1024
"""Files up to this size are read at once; a thread would cost more than it spares."""

T = TypeVar("T")


@frozen(kw_only=True)
class ReadFile:
    path: str = field(metadata=describe("The file, relative to the workspace's root."))
    start_line: int | None = field(
        default=None, metadata=describe("First line to read, from 1. Default: 1.", minimum=1)
    )
    line_count: int | None = field(
        default=None, metadata=describe("How many lines to read. Default: all.", minimum=1)
    )


@frozen(kw_only=True)
class WriteFile:
    path: str = field(metadata=describe("The file, relative to the workspace's root."))
    content: str = field(metadata=describe("The whole new content."))


@frozen(kw_only=True)
class EditFile:
    path: str = field(metadata=describe("The file, relative to the workspace's root."))
    edits: tuple[Edit, ...] = field(
        metadata=describe(
            "Replacements, applied in order, each to the result of the one before; all or none.",
            minItems=1,
            maxItems=200,
        )
    )


@frozen(kw_only=True)
class Planned:
    """A change to a file, worked out but not made. `text` is the whole new one, where an editor could write it
    as well: in plain UTF-8."""

    path: Path
    data: bytes
    text: str | None
    change: FileChange


# --- read_file --------------------------------------------------------------------------------


async def _read(context: ToolContext, arguments: ReadFile) -> ToolOutcome:
    path = resolved(context.workspace, arguments.path)
    file = await _current(context, path)
    name = beneath.shown(context.workspace, path)
    location = Location(path=str(path), line=arguments.start_line)
    text, truncated = _portion(file.plain, arguments, name, context.output_limit_bytes)
    return ToolOutcome(text=well_formed(text), locations=(location,), truncated=truncated)


def _portion(text: str, arguments: ReadFile, name: str, limit_bytes: int) -> tuple[str, bool]:
    if not text:
        return "(the file is empty)", False
    all_of_it = arguments.start_line in (None, 1) and arguments.line_count is None
    if all_of_it and len(text) * 4 <= limit_bytes:
        return text, False
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    start = (arguments.start_line or 1) - 1
    if start >= len(lines):
        raise ToolFailure(
            f"{name} has {len(lines)} lines; start_line {start + 1} is beyond its end."
        )
    wanted = lines[start:][: arguments.line_count]
    shown: list[str] = []
    used = 0
    for line in wanted:
        used += len(line.encode("utf-8", "replace")) + 1
        if used > limit_bytes:
            break
        shown.append(line)
    cut_line = not shown
    if cut_line:
        shown.append(clip(wanted[0], limit_bytes).text)
    end = start + len(shown)
    truncated = cut_line or len(shown) < len(wanted)
    if not truncated and all_of_it:
        return text, False
    note = f"[lines {start + 1}-{end} of {len(lines)}"
    note += f"; line {end} is too long and was cut" if cut_line else ""
    note += f"; go on with start_line={end + 1}]" if end < len(lines) else "]"
    return "\n".join([*shown, note]), truncated


async def _preview_read(context: ToolContext, arguments: ReadFile) -> Preview:
    path = resolved(context.workspace, arguments.path)
    locations = (Location(path=str(path), line=arguments.start_line),)
    given = {"path": one_line(arguments.path, 300), "start_line": arguments.start_line}
    return Preview(
        title=one_line(f"Read {beneath.shown(context.workspace, path)}"),
        subject=ToolCallSubject(
            name="read_file",
            arguments={**given, "line_count": arguments.line_count},
            locations=locations,
        ),
        locations=locations,
        paths=(str(path),),
        risk="low",
    )


# --- write_file and edit_file -----------------------------------------------------------------


def _plan_write(
    context: ToolContext, arguments: WriteFile, path: Path, unsaved: str | None
) -> Planned:
    name = beneath.shown(context.workspace, path)
    before = _existing(context, path)
    if unsaved is not None:
        before = textfile.in_buffer(unsaved, before)
    form = NEW_FILE if before is None else before.form
    content = arguments.content
    if form.mark:
        content = content.removeprefix("\ufeff")
    if before is not None:
        content = textfile.with_line_ends(content, form.line_end)
    data = textfile.encode(content, form, name)
    if before is not None and content == before.text:
        raise ToolFailure(f"{name} has exactly this content already; nothing was written.")
    old = None if before is None else before.text
    return Planned(
        path=path,
        data=data,
        text=_plainly(content, form),
        change=file_change(str(path), old, content),
    )


def _plan_edit(
    context: ToolContext, arguments: EditFile, path: Path, unsaved: str | None
) -> Planned:
    name = beneath.shown(context.workspace, path)
    before = textfile.read(context.workspace, path)
    if unsaved is not None:
        before = textfile.in_buffer(unsaved, before)
    text = apply_edits(before.text, arguments.edits, line_end=before.form.line_end, name=name)
    data = textfile.encode(text, before.form, name)
    if text == before.text:
        raise ToolFailure(f"The edits leave {name} as it is; nothing was written.")
    return Planned(
        path=path,
        data=data,
        text=_plainly(text, before.form),
        change=file_change(str(path), before.text, text),
    )


def _plainly(text: str, form: TextForm) -> str | None:
    return text if form.encoding == "utf-8" and not form.mark else None


def _existing(context: ToolContext, path: Path) -> TextFile | None:
    """The file as it is, or None when there is none. A file that is not text cannot be replaced."""
    try:
        return textfile.read(context.workspace, path)
    except FileNotFoundError:
        return None


async def _write(context: ToolContext, arguments: WriteFile) -> ToolOutcome:
    path = resolved(context.workspace, arguments.path)
    unsaved = await _unsaved(context, path)
    return await _carry_out(context, path, partial(_plan_write, context, arguments, path, unsaved))


async def _edit(context: ToolContext, arguments: EditFile) -> ToolOutcome:
    path = resolved(context.workspace, arguments.path)
    unsaved = await _unsaved(context, path)
    return await _carry_out(context, path, partial(_plan_edit, context, arguments, path, unsaved))


async def _carry_out(context: ToolContext, path: Path, plan: Callable[[], Planned]) -> ToolOutcome:
    def work() -> Planned:
        planned = plan()
        beneath.replace(context.workspace, path, planned.data)
        return planned

    if context.buffers is not None:
        planned = await finished(partial(_explained, context, path, plan))
        if planned.text is None or not await context.buffers.write(path, planned.text):
            planned = await finished(partial(_explained, context, path, work))
        change = planned.change
    else:
        change = (await finished(partial(_explained, context, path, work))).change
    name = beneath.shown(context.workspace, path)
    verb = "Created" if change.operation == "create" else "Changed"
    return ToolOutcome(
        text=f"{verb} {name}: {_lines(change.added)} added, {change.removed} removed.",
        changes=(change,),
        locations=(Location(path=str(path), line=_first_line(change)),),
    )


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


async def _preview_write(context: ToolContext, arguments: WriteFile) -> Preview:
    path = resolved(context.workspace, arguments.path)
    unsaved = await _unsaved(context, path)
    planned = await _planned(context, path, partial(_plan_write, context, arguments, path, unsaved))
    verb = "Create" if planned.change.operation == "create" else "Overwrite"
    return _change_preview(context, verb, planned)


async def _preview_edit(context: ToolContext, arguments: EditFile) -> Preview:
    path = resolved(context.workspace, arguments.path)
    unsaved = await _unsaved(context, path)
    planned = await _planned(context, path, partial(_plan_edit, context, arguments, path, unsaved))
    return _change_preview(context, "Edit", planned)


async def _planned(context: ToolContext, path: Path, plan: Callable[[], Planned]) -> Planned:
    """In a thread whatever the size: comparing two texts can take long where reading one does not."""
    return await finished(partial(_explained, context, path, plan))


def _change_preview(context: ToolContext, verb: str, planned: Planned) -> Preview:
    return Preview(
        title=one_line(f"{verb} {beneath.shown(context.workspace, planned.path)}"),
        subject=FileChangeSubject(changes=(planned.change,)),
        locations=(Location(path=str(planned.path), line=_first_line(planned.change)),),
        paths=(str(planned.path),),
        risk=_write_risk(planned.path),
    )


def _write_risk(path: Path) -> Risk:
    """What lies in these folders runs or is obeyed later without anybody being asked again."""
    return "high" if {".git", ".callboard"} & set(path.parts) else "medium"


def _first_line(change: FileChange) -> int | None:
    """Where the first hunk of the diff begins in the new file."""
    _, found, rest = change.diff.partition("\n@@ -")
    after = rest.partition("+")[2].partition(" ")[0].partition(",")[0] if found else ""
    return max(int(after), 1) if after.isdigit() else None


# --- shared -----------------------------------------------------------------------------------


async def _current(context: ToolContext, path: Path) -> TextFile:
    """The file as it is: in the editor, where that has it open and says so, else on disk."""
    unsaved = await _unsaved(context, path)
    saved = await _guarded(context, path, partial(textfile.read, context.workspace, path))
    return saved if unsaved is None else textfile.in_buffer(unsaved, saved)


async def _unsaved(context: ToolContext, path: Path) -> str | None:
    """What an editor has of a file. It is asked only for what may be read, and is there as a text."""
    if context.buffers is None:
        return None
    try:
        await _guarded(context, path, partial(textfile.read, context.workspace, path))
    except ToolFailure:
        return None
    return await context.buffers.read(path)


async def _guarded(context: ToolContext, path: Path, work: Callable[[], T]) -> T:
    """`work` on the file `path`: at once when it is small, else in a thread."""
    call = partial(_explained, context, path, work)
    return call() if _size(path) <= SMALL_BYTES else await finished(call)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _explained(context: ToolContext, path: Path, work: Callable[[], T]) -> T:
    """`work`, its errors put into words for the model."""
    try:
        return work()
    except PathDenied as denied:
        raise ToolFailure(denied_text(context.workspace, denied)) from None
    except FileNotFoundError:
        raise ToolFailure(missing_text(context.workspace, path)) from None
    except OSError as fault:
        raise ToolFailure(system_text(context.workspace, path, fault)) from None


READ_FILE = Tool(
    name="read_file",
    description=(
        "Read a text file, or some of its lines. A long file is cut with a note that says how to go on."
    ),
    arguments=ReadFile,
    effect="read",
    kind="read",
    run=_read,
    preview=_preview_read,
)

WRITE_FILE = Tool(
    name="write_file",
    description=(
        "Create a file, or replace its whole content; folders are made as needed. An existing file "
        "keeps its encoding, line ends and mode. Prefer edit_file for changing parts of a file."
    ),
    arguments=WriteFile,
    effect="write",
    kind="edit",
    run=_write,
    preview=_preview_write,
)

EDIT_FILE = Tool(
    name="edit_file",
    description=(
        "Replace exact pieces of text in a file. Each old_text must occur exactly once (or set "
        "replace_all), white space included. If one does not fit, nothing is changed."
    ),
    arguments=EditFile,
    effect="write",
    kind="edit",
    run=_edit,
    preview=_preview_edit,
)
