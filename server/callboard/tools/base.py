"""What a tool is: typed arguments in, one outcome out, and what may be shown before it runs."""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from attrs import field, frozen

from callboard_rpc.approvals import Risk, Subject
from callboard_rpc.common import BlobRef, CallId, FileChange, Json, Location, Mode, ToolKind

Effect: TypeAlias = Literal["read", "write", "execute", "kernel"]
"""``read``: a pure workspace read, may run in parallel. ``write``: changes files. ``execute``: runs
commands. ``kernel``: changes only Callboard's own state (plan, agents, groups); always allowed."""


WITHHELD: Final = "is a file of Callboard's own, with keys, which no agent may have"


class PathDenied(Exception):
    """The path may not be touched: once resolved it lies outside of the workspace, or it is no path.

    `reason` continues a sentence that begins with the path.
    """

    def __init__(self, path: str, reason: str = "is outside of the workspace") -> None:
        super().__init__(f"{path} {reason}")
        self.path = path
        self.reason = reason


class Workspace(Protocol):
    """The folders a session may touch: its working directory and the additional ones, resolved."""

    @property
    def root(self) -> Path: ...

    @property
    def roots(self) -> tuple[Path, ...]: ...

    def is_root(self, root: Path, found: os.stat_result) -> bool:
        """Whether `found`, which is what stands at `root` now, is the folder that this is a workspace of:
        another one may have taken its place, or a link."""
        ...

    def resolve(self, path: str) -> Path:
        """`path` (absolute, or relative to `root`) through all symlinks. Raises `PathDenied`."""
        ...

    def withholds(self, path: Path, found: os.stat_result | None = None) -> bool:
        """Whether the file `path` (as resolved), or `found`, which is what was opened by that name, is one that
        no session may touch wherever it lies, by whatever name."""
        ...


class BlobSink(Protocol):
    """Keeps a large value and says where it is."""

    async def put(self, data: bytes, mime_type: str = "text/plain; charset=utf-8") -> BlobRef: ...


class Buffers(Protocol):
    """The files of a workspace as an editor has them open, saved or not."""

    async def read(self, path: Path) -> str | None:
        """The text of a file there; None where the editor has nothing to say of it."""
        ...

    async def write(self, path: Path, text: str) -> bool:
        """Has the editor write a file. False where it does not: then nobody has."""
        ...


@frozen(kw_only=True)
class TerminalCommand:
    """A command for a terminal of an editor. `environment` is set there besides what the editor has;
    of the output at most the last `kept_bytes` are wanted at a time."""

    call_id: CallId
    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    time_limit_s: float
    kept_bytes: int


@frozen(kw_only=True)
class TerminalEnd:
    """What became of a command in a terminal: its exit code, or the name of a signal, as the editor tells
    them. `output` is all that it printed, or, when `cut`, the end of it. `unknown` says why it is not known
    how it ended; of one that was `timed_out`, why it is not known that it has ended."""

    output: str = ""
    cut: bool = False
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    unknown: str | None = None


class Terminals(Protocol):
    """The terminals of an editor, where it has a session open and lets commands run in them."""

    async def run(
        self, command: TerminalCommand, printed: Callable[[str], None]
    ) -> TerminalEnd | None:
        """Runs a command, and passes on what it prints. None where the editor has not begun it: then
        nobody has. When its time is over, or the caller is cancelled, the editor is told to end it. Raises
        `ToolFailure` for a command that is not to be run at all."""
        ...


@frozen(kw_only=True)
class ToolContext:
    """What a running call may use. `emit` streams output to whoever watches; it never blocks.

    `session`, `turn` and `fence` are those of the run: what a tool writes into the log is written under
    them, or not at all.
    `services` is where a feature's tools find what the host registered under a name. `profile` is the agent
    that acts, which in a room is one of several; None is the session's own. `buffers` are an editor's, where one
    has the session open and lets its files be read through it; so are the `terminals`, for commands.
    """

    workspace: Workspace
    session: str
    turn: str
    fence: int
    call_id: CallId
    mode: Mode
    emit: Callable[[str], None]
    blobs: BlobSink
    environment: Mapping[str, str]
    command_timeout_s: float = 120.0
    output_limit_bytes: int = 64 * 1024
    services: Mapping[str, Any] = field(factory=dict[str, Any])
    profile: str | None = None
    buffers: Buffers | None = None
    terminals: Terminals | None = None


@frozen(kw_only=True)
class ToolOutcome:
    """How a call ended. `text` is what the model reads; it says what was wrong and what to do."""

    text: str
    status: Literal["ok", "error", "timed_out"] = "ok"
    changes: tuple[FileChange, ...] = ()
    locations: tuple[Location, ...] = ()
    exit_code: int | None = None
    truncated: bool = False
    blob: BlobRef | None = None
    events: tuple[Any, ...] = ()
    """Event data (of `callboard_rpc.events`) to commit together with the result."""


@frozen(kw_only=True)
class Preview:
    """What a person is shown before the call runs, and what policy judges.

    `command` and `paths` are what patterns of rules match: the command line, and the resolved paths.
    """

    title: str
    subject: Subject
    locations: tuple[Location, ...] = ()
    command: str | None = None
    paths: tuple[str, ...] = ()
    risk: Risk = "medium"


class ToolFailure(Exception):
    """The call cannot be done as asked; the text is the tool result that the model reads."""


Run: TypeAlias = Callable[[ToolContext, Any], Awaitable[ToolOutcome]]
Look: TypeAlias = Callable[[ToolContext, Any], Awaitable[Preview]]


@frozen(kw_only=True)
class Tool:
    """A tool. `arguments` is a frozen attrs class; its JSON Schema is what the model sees.

    `run` returns an outcome or raises `ToolFailure`; `preview` may raise `ToolFailure` too, and then
    nobody is asked. Both are given an instance of `arguments`.
    """

    name: str
    description: str
    arguments: type[Any]
    effect: Effect
    kind: ToolKind
    run: Run
    preview: Look
    schema: Json = field(factory=dict[str, Any])
    """Made from `arguments` by the registry when empty."""
    waits: bool = False
    """It waits for others, and bounds that by itself: meanwhile the turn neither works nor idles."""
    permission: str | None = None
    """Another name under which policy knows it, as it knows several that do one kind of thing: what is
    said of that name is said of all of them. What is said of its own is said of it alone."""
    invalid_code: str | None = None
    """What a result begins with when the arguments are not valid, for a tool whose errors have codes."""
