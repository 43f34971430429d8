"""Commands as terminals of the editor's: which of the two ways there are, and what is told of each. Pure.

A display terminal only shows what our own runner prints. It is no part of the protocol, but of what several
editors and agents have agreed on: `_meta` of a call names the terminal, of its updates what is printed and
how it ended.
"""

import posixpath
import re
from typing import Any, Final, Literal, TypeAlias

import attrs
from attrs import define

from callboard_rpc import events

from ...tools.command import RUN_COMMAND
from ..contract import tool_calls as acp
from ..contract.server import ClientCapabilities
from ..contract.updates import ToolCall, ToolCallChanged
from . import tools
from .texts import cut

Way: TypeAlias = Literal["text", "display", "client"]
"""How commands are shown: as texts, in a display terminal, or in a terminal of the client's in which they run."""

_ESCAPE = re.compile(
    "(\x1b\\[[0-9;:]*m)"  # colours
    "|\x1b\\[[0-?]*[ -/]*[@-~]"
    "|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)"
    "|\x1b[ -/]*[0-OQ-WYZ\\\\`-~]"
    "|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_BEGUN = re.compile("\x1b(?:\\[[0-?]*[ -/]*|[\\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)\\Z")
_LONGEST_ESCAPE: Final = 4096


def way_of(capabilities: ClientCapabilities, wanted: Literal["auto", "client", "own"]) -> Way:
    """By what the client declares and the person wants. Our own runner comes first: it has limits, an
    environment without secrets, and an end that reaches all processes."""
    shows = (capabilities.meta or {}).get("terminal_output") is True
    if capabilities.terminal and (wanted == "client" or (wanted == "auto" and not shows)):
        return "client"
    return "display" if shows else "text"


def notes_of(text: str) -> str:
    """The notes at the end of a command's result: how it ended, where that was not well."""
    lines = text.split("\n")
    first = len(lines)
    while first and lines[first - 1].startswith("[") and lines[first - 1].endswith("]"):
        first -= 1
    return "\n".join(lines[first:])


def ended_there(result: events.ToolResult, terminal_id: str) -> ToolCallChanged:
    """The end of a command that ran in a terminal of the client's, which shows what it printed."""
    over = tools.ended(result, "execute")
    said = notes_of(result.text) or ("" if result.status == "ok" else result.text)
    words = (tools.words(cut(said)),) if said else ()
    return attrs.evolve(over, content=(acp.Terminal(terminal_id=terminal_id), *words))


@define
class Display:
    """The display terminal of one call, whose id it has. What goes there is text, line ends and colours: a
    command cannot have the editor's terminal do anything else."""

    call_id: str
    _held: str = ""
    _any: bool = False

    @property
    def content(self) -> tuple[acp.ToolCallContent, ...]:
        return (acp.Terminal(terminal_id=self.call_id),)

    def begun(self, call: ToolCall, cwd: str) -> ToolCall:
        """The call with the terminal; it is shown once the call runs."""
        info: dict[str, Any] = {"terminal_id": self.call_id}
        if cwd:
            info["cwd"] = cwd
        return attrs.evolve(
            call,
            content=self.content if call.status == "in_progress" else None,
            meta={"terminal_info": info},
        )

    def printed(self, text: str) -> ToolCallChanged | None:
        """What the call has printed since."""
        data = self._plain(text)
        self._any = self._any or bool(text)
        if not data:
            return None
        output = {"terminal_id": self.call_id, "data": cut(data)}
        return ToolCallChanged(tool_call_id=self.call_id, meta={"terminal_output": output})

    def _plain(self, text: str) -> str:
        text = self._held + text
        begun = _BEGUN.search(text)
        self._held = "" if begun is None else text[begun.start() :]
        if begun is not None:
            text = text[: begun.start()]
        if len(self._held) > _LONGEST_ESCAPE:
            self._held = ""
        return _ESCAPE.sub(lambda found: found[1] or "", text)

    def ended(
        self, result: events.ToolResult, *, heard: bool
    ) -> tuple[ToolCallChanged | None, ToolCallChanged]:
        """What is shown yet, and the end. Where not all was `heard` that it printed, its text stands instead."""
        over = tools.ended(result, "execute")
        ran = self._any or result.exit_code is not None or result.status == "timed_out"
        rest = None
        if heard and ran:
            notes = notes_of(result.text)
            said = (f"\n{notes}\n" if notes else "") if self._any else f"{result.text}\n"
            rest = self.printed(said)
            over = attrs.evolve(over, content=self.content)
        end = {"terminal_id": self.call_id, "exit_code": result.exit_code, "signal": None}
        return rest, attrs.evolve(over, meta={"terminal_exit": end})


def display_of(call: events.ToolCall) -> Display | None:
    """The display terminal for a call, if it is a command."""
    return Display(call.call_id) if call.name == RUN_COMMAND.name else None


def folder_of(call: events.ToolCall, cwd: str) -> str:
    """Where a command runs, as far as its arguments tell."""
    given: Any = call.arguments.get("cwd")
    return posixpath.normpath(posixpath.join(cwd, given)) if isinstance(given, str) else cwd
