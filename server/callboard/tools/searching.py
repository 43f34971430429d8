"""`search_files`: lines that match a regular expression, by ripgrep where there is one."""

import functools
import shutil
from pathlib import Path

import anyio
import anyio.to_thread
from attrs import field, frozen

from callboard_rpc.approvals import ToolCallSubject
from callboard_rpc.common import Location

from . import search_jobs
from .base import Preview, Tool, ToolContext, ToolFailure, ToolOutcome
from .display import clip, one_line, printable, well_formed
from .listing import file_pattern
from .offload import searches
from .paths import looked_at, missing_text, resolved
from .schema import describe

DEFAULT_LIMIT = 100
MOST_MATCHES = 1000
TIME_LIMIT_S = 15.0
_LOCATIONS = 20


@frozen(kw_only=True)
class SearchFiles:
    pattern: str = field(
        metadata=describe(
            "A regular expression, matched line by line.", minLength=1, maxLength=2000
        )
    )
    path: str | None = field(
        default=None,
        metadata=describe("The folder or file to search. Default: the workspace's root."),
    )
    glob: str | None = field(
        default=None,
        metadata=describe(
            "Search only files that match this, as in .gitignore: *.py.",
            minLength=1,
            maxLength=1000,
        ),
    )
    case_sensitive: bool = field(
        default=True, metadata=describe("Whether upper and lower case differ.")
    )
    limit: int = field(
        default=DEFAULT_LIMIT,
        metadata=describe(
            "How many matches to return at the most.", minimum=1, maximum=MOST_MATCHES
        ),
    )


async def _preview(context: ToolContext, arguments: SearchFiles) -> Preview:
    path = resolved(context.workspace, arguments.path or ".")
    locations = (Location(path=str(path)),)
    where = f" in {arguments.path}" if arguments.path else ""
    return Preview(
        title=one_line(f"Search for {arguments.pattern}{where}"),
        subject=ToolCallSubject(
            name="search_files",
            arguments={
                "pattern": one_line(arguments.pattern, 300),
                "path": one_line(arguments.path or ".", 300),
                "glob": arguments.glob,
            },
            locations=locations,
        ),
        locations=locations,
        paths=(str(path),),
        risk="low",
    )


async def _run(context: ToolContext, arguments: SearchFiles) -> ToolOutcome:
    workspace = context.workspace
    start = resolved(workspace, arguments.path or ".")
    root = next(r for r in workspace.roots if start.is_relative_to(r))
    if looked_at(workspace, start) is None:
        raise ToolFailure(missing_text(workspace, start))
    if arguments.glob is not None:
        file_pattern(arguments.glob)
    search = search_jobs.Search(
        workspace=workspace,
        root=root,
        start=start,
        pattern=arguments.pattern,
        glob=arguments.glob,
        ignore_case=not arguments.case_sensitive,
        limit=arguments.limit + 1,
    )
    job = search_jobs.Job(search, ripgrep(context.environment.get("PATH")))
    late = True
    with anyio.move_on_after(TIME_LIMIT_S):
        try:
            await anyio.to_thread.run_sync(job.run, abandon_on_cancel=True, limiter=searches())
            late = False
        finally:
            job.stop()
    if job.fault is not None:
        raise ToolFailure(job.fault)
    return _outcome(context, arguments, root, list(job.matches), late or job.incomplete)


def _outcome(
    context: ToolContext,
    arguments: SearchFiles,
    root: Path,
    matches: list[search_jobs.Match],
    late: bool,
) -> ToolOutcome:
    more = len(matches) > arguments.limit
    matches = matches[: arguments.limit]
    prefix = "" if root == context.workspace.root else f"{root}/"
    lines = [
        f"{printable(prefix + m.path)}:{m.line}: {well_formed(m.text)}".replace("\n", " ")
        for m in matches
    ]
    notes: list[str] = []
    if more:
        notes.append(
            f"[only the first {arguments.limit} matches; narrow the search or raise limit]"
        )
    if late:
        notes.append(
            "[not all was searched: the time was up. Give a path or a glob, or a simpler pattern]"
        )
    shown = clip("\n".join(lines) or "(no matches)", context.output_limit_bytes)
    return ToolOutcome(
        text="\n".join([shown.text, *notes]),
        locations=tuple(
            Location(path=str(root / m.path), line=m.line) for m in matches[:_LOCATIONS]
        ),
        truncated=shown.truncated or more or late,
    )


@functools.lru_cache(maxsize=8)
def ripgrep(search_path: str | None) -> str | None:
    """Where ripgrep is, or None."""
    return shutil.which("rg", path=search_path)


SEARCH_FILES = Tool(
    name="search_files",
    description=(
        "Search the text of files for a regular expression; returns path:line: text. What .gitignore "
        "excludes, binary files and very large files are left out."
    ),
    arguments=SearchFiles,
    effect="read",
    kind="search",
    run=_run,
    preview=_preview,
)
