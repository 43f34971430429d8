"""`list_files`: what is in a folder, without what the workspace ignores."""

import stat
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from attrs import field, frozen

from callboard_rpc.approvals import ToolCallSubject
from callboard_rpc.common import Location

from . import beneath, tree
from .base import Preview, Tool, ToolContext, ToolFailure, ToolOutcome
from .display import clip, one_line, printable
from .offload import searches
from .paths import looked_at, missing_text, resolved
from .schema import describe

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

ENTRY_LIMIT = 1000
_TIME_LIMIT_S = 10.0
_DEPTH = 2
_WHOLE_DEPTH = 64


@frozen(kw_only=True)
class ListFiles:
    path: str | None = field(
        default=None, metadata=describe("The folder to list. Default: the workspace's root.")
    )
    depth: int | None = field(
        default=None,
        metadata=describe(
            "How many levels to go down. Default: 2, or all of them with a pattern.",
            minimum=1,
            maximum=_WHOLE_DEPTH,
        ),
    )
    pattern: str | None = field(
        default=None,
        metadata=describe(
            "List only files that match this glob, as in .gitignore: *.py, docs/**/*.md.",
            minLength=1,
            maxLength=1000,
        ),
    )


async def _preview(context: ToolContext, arguments: ListFiles) -> Preview:
    path = resolved(context.workspace, arguments.path or ".")
    name = arguments.path or "."
    what = f"{arguments.pattern} in {name}" if arguments.pattern else name
    locations = (Location(path=str(path)),)
    return Preview(
        title=one_line(f"List {what}"),
        subject=ToolCallSubject(
            name="list_files",
            arguments={
                "path": one_line(name, 300),
                "depth": arguments.depth,
                "pattern": arguments.pattern,
            },
            locations=locations,
        ),
        locations=locations,
        paths=(str(path),),
        risk="low",
    )


async def _run(context: ToolContext, arguments: ListFiles) -> ToolOutcome:
    start = resolved(context.workspace, arguments.path or ".")
    stopped = False

    def stop() -> bool:
        return stopped or time.monotonic() > deadline

    deadline = time.monotonic() + _TIME_LIMIT_S
    try:
        return await anyio.to_thread.run_sync(
            partial(_list, context, start, arguments, stop),
            abandon_on_cancel=True,
            limiter=searches(),
        )
    finally:
        stopped = True


def _list(
    context: ToolContext, start: Path, arguments: ListFiles, stop: Callable[[], bool]
) -> ToolOutcome:
    workspace = context.workspace
    found = looked_at(workspace, start)
    if found is None:
        raise ToolFailure(missing_text(workspace, start))
    if not stat.S_ISDIR(found.st_mode):
        raise ToolFailure(f"{beneath.shown(workspace, start)} is a file; use read_file.")
    wanted = file_pattern(arguments.pattern) if arguments.pattern else None
    depth = arguments.depth or (_WHOLE_DEPTH if wanted else _DEPTH)
    root = next(r for r in workspace.roots if start.is_relative_to(r))
    prefix = "" if root == workspace.root else f"{root}/"
    inside = "" if start == root else start.relative_to(root).as_posix() + "/"
    lines: list[str] = []
    more = deeper = False
    for entry in tree.walk(workspace, start, depth=depth, stop=stop):
        if wanted is not None and (
            entry.kind == "folder" or not wanted.match_file(entry.path[len(inside) :])
        ):
            continue
        if len(lines) == ENTRY_LIMIT:
            more = True
            break
        deeper = deeper or (entry.kind == "folder" and entry.depth == depth)
        lines.append(printable(prefix + entry.path).replace("\n", "\\n") + _SUFFIX[entry.kind])
    notes: list[str] = []
    if more:
        notes.append(f"[only the first {ENTRY_LIMIT}; give a path or a pattern to see the rest]")
    elif stop():
        notes.append("[not all: the time for listing was up; give a path to see the rest]")
    elif deeper and wanted is None:
        notes.append(f"[down to depth {depth}; give a path or a depth to see more]")
    empty = "(nothing matches)" if wanted is not None else "(empty)"
    shown = clip("\n".join(lines) or empty, context.output_limit_bytes)
    return ToolOutcome(
        text="\n".join([shown.text, *notes]),
        locations=(Location(path=str(start)),),
        truncated=shown.truncated or more or stop(),
    )


_SUFFIX: dict[tree.Kind, str] = {"file": "", "folder": "/", "link": "@", "other": " (special)"}


def file_pattern(pattern: str) -> "GitIgnoreSpec":
    """A glob that a model wrote. Raises `ToolFailure` when it is none, or could take for ever."""
    if not tree.is_tame(pattern):
        raise ToolFailure(
            f"pattern: {one_line(pattern, 60)} has too many wildcards; use at most 3."
        )
    try:
        return tree.spec_of([pattern])
    except ValueError:
        raise ToolFailure(f"pattern: {one_line(pattern, 60)} is not a glob.") from None


LIST_FILES = Tool(
    name="list_files",
    description=(
        "List files and folders (folders end in /, symbolic links in @). What .gitignore excludes "
        "is left out."
    ),
    arguments=ListFiles,
    effect="read",
    kind="search",
    run=_run,
    preview=_preview,
)
