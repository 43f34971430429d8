"""Files that a prompt names as context, as resources whose text stands in the log.

What the agent saw must be what the log says it saw, so the text is taken when the prompt is made: from
the client's buffer where it offers that, else from disk, inside of the session's folders only.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from callboard_rpc.common import ContextItem, EmbeddedResource, Range
from callboard_rpc.errors import CallboardError

from ..host import Host
from ..log.text import head_and_tail, redacted
from ..tools.base import PathDenied
from ..tools.workspace import FolderWorkspace
from .call import Call
from .pages import invalid

_MAX_CHARS = 64 * 1024
_MAX_FILE_BYTES = 8 * 1024 * 1024
_READ_S = 2.0
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


async def attached(
    host: Host, session_id: str, items: Sequence[ContextItem], call: Call
) -> list[EmbeddedResource]:
    """Raises pathDenied, pathNotFound, invalidParams, naming the item."""
    if not items:
        return []
    state = await host.cache.state(session_id)
    workspace = _workspace(host, state.cwd, state.directories)
    found: list[EmbeddedResource] = []
    for index, item in enumerate(items):
        path = _path(item.uri, index)
        _check(item.range, index)
        try:
            resolved = workspace.resolve(path)
        except PathDenied as denied:
            raise CallboardError("pathDenied", str(denied), data={"path": path}) from denied
        text = await _buffer(call, item.uri)
        if text is None:
            text = _read(resolved, path)
        if item.range is not None:
            text = cut(text, item.range)
        # before it is cut: nobody would know half of a secret
        text = redacted(host.log.redact, text)
        found.append(EmbeddedResource(uri=item.uri, text=head_and_tail(text, _MAX_CHARS // 2)))
    return found


def _workspace(host: Host, cwd: str, directories: Sequence[str]) -> FolderWorkspace:
    folders = [Path(directory) for directory in directories]
    try:
        return FolderWorkspace(Path(cwd), folders, withheld=host.environment.withheld)
    except NotADirectoryError as gone:
        raise CallboardError(
            "pathNotFound",
            f"{gone}; bring the session's folder back to give files of it as context",
            data={"path": cwd},
        ) from gone


def _path(uri: str, index: int) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError as fault:
        raise invalid(f"$.context[{index}].uri", f"is no URI: {fault}") from fault
    if parts.scheme == "file":
        return unquote(parts.path)
    if not parts.scheme:
        return uri
    raise CallboardError(
        "invalidParams",
        f"context[{index}] is {uri[:200]!r}; only files can be given as context",
        data={"errors": [{"path": f"$.context[{index}].uri", "message": "must be a file"}]},
    )


def _check(range: Range | None, index: int) -> None:
    if range is not None:
        for name, place in (("start", range.start), ("end", range.end)):
            if place.line < 0 or place.character < 0:
                raise invalid(f"$.context[{index}].range.{name}", "must not be negative")


async def _buffer(call: Call, uri: str) -> str | None:
    """The text of an open buffer, saved or not, where the client tells it."""
    lsp = call.connection.lsp
    if lsp is not None:
        document = await lsp.open_document_text(uri)
        if document is not None:
            return document[0]
    if call.capabilities.read_file:
        try:
            answer = await call.connection.request("client/readFile", {"uri": uri}, timeout=_READ_S)
        except Exception:
            return None
        return answer.text
    return None


def _read(resolved: Path, path: str) -> str:
    try:
        if not resolved.is_file():
            raise FileNotFoundError
        if resolved.stat().st_size > _MAX_FILE_BYTES:
            raise CallboardError(
                "pathDenied", f"{path} is too large to be given as context", data={"path": path}
            )
        return resolved.read_bytes().decode("utf-8", "replace")
    except OSError as fault:
        raise CallboardError(
            "pathNotFound", f"{path} cannot be read", data={"path": path}
        ) from fault


def cut(text: str, range: Range) -> str:
    """The part of `text` that an LSP range names: zero-based lines, which end as LSP has them, and
    UTF-16 characters; from its start up to but without its end, and never beyond the text."""
    lines = _LINE.findall(text)
    start, end = range.start, range.end
    if start.line >= len(lines) or (end.line, end.character) <= (start.line, start.character):
        return ""
    picked = lines[start.line : end.line + 1]
    if end.line < len(lines):
        picked[-1] = _up_to(picked[-1], end.character)
    picked[0] = picked[0][len(_up_to(picked[0], start.character)) :]
    return "".join(picked)


def _up_to(line: str, units: int) -> str:
    """The first `units` UTF-16 code units of a line, whole characters only."""
    if line.isascii():
        return line[:units]
    for index, character in enumerate(line):
        units -= 2 if ord(character) > 0xFFFF else 1
        if units < 0:
            return line[:index]
    return line
