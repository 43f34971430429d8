"""Tool calls that small models write as text, found while the text streams.

Understood are fenced JSON, ``<tool_call>…</tool_call>`` and a bare JSON object at the start of the
answer, with ``name``/``arguments`` or ``tool``/``parameters``, several in one answer too. Pure, and
modest: only what may still become a call is held back, what turns out to be none is given as the
text that it was, and a name that is no tool of the request never becomes a call.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any, Literal, TypeAlias, cast

import orjson

from callboard.models.base import TextDelta, ToolRequest, ToolSpec
from callboard_rpc.common import Json

Found: TypeAlias = TextDelta | ToolRequest

_OPEN, _CLOSE, _FENCE = "<tool_call>", "</tool_call>", "```"
_NAME_KEYS = ("name", "tool", "tool_name", "function")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
_KEYS = frozenset((*_NAME_KEYS, *_ARGUMENT_KEYS, "id", "type", "tool_call_id"))
_LANGUAGES = frozenset({"", "json", "tool_call", "tool_calls", "tool_code", "tool", "xml"})
_HOLD_LIMIT = 1024 * 1024
"""Characters; past this, what looked like a call is text."""

_FENCE_OPEN = re.compile(r"^ {0,3}```([^\n`]*)\n", re.M)
_FENCE_CLOSE = re.compile(r"\n[ \t]*```[ \t]*(?:\n|$)")
_FIRST_KEY = re.compile(r'\{\s*"((?:[^"\\]|\\.)*)"\s*:', re.S)
# What the end of the held text may be the start of: a tag, or a fence on a line of its own.
_MAYBE_TAG = re.compile(r"<(?:t(?:o(?:o(?:l(?:_(?:c(?:a(?:l(?:l)?)?)?)?)?)?)?)?)?\Z")
_MAYBE_CLOSE = re.compile(r"\n[ \t]*`{0,3}[ \t]*\Z")
_MAYBE_FENCE = re.compile(r"(?:^|(?<=\n)) {0,3}(?:`{1,2}|```[^\n`]*)?\Z")


class TextCallFilter:
    """Splits one answer's text into text and calls. `tools` are the names that may be called."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = frozenset(tools)
        self._held = ""
        self._mode: Literal["start", "text", "tag", "fence", "code"] = "start"
        self._line_start = True
        self._after_call = False
        self._searched = 0
        self._scan = _ObjectScan()

    def feed(self, text: str) -> list[Found]:
        """What is certain now, in order."""
        self._held += text
        out: list[Found] = []
        while self._step(out):
            pass
        if len(self._held) > _HOLD_LIMIT:
            self._as_text(len(self._held), out)
            self._mode = "text"
        return _merged(out)

    def close(self) -> list[Found]:
        """What the end of the answer makes certain: a call that was never closed, or the text it was."""
        out: list[Found] = []
        if self._mode == "tag":
            calls = self._tagged(self._held)
        elif self._mode == "fence":
            # The fence may end the answer without a line end after it, or not be closed at all.
            body = self._held.partition("\n")[2].strip().removesuffix(_FENCE)
            calls = self._tagged(body) if body.startswith(_OPEN) else self._calls(body)
        else:
            calls = None
        if calls is not None:
            self._take(len(self._held), calls, out)
        self._as_text(len(self._held), out)
        return _merged(out)

    def _step(self, out: list[Found]) -> bool:
        """One move forward; whether another may follow."""
        if self._after_call:
            self._held = self._held.lstrip()
            self._after_call = not self._held
        if not self._held:
            return False
        match self._mode:
            case "start":
                return self._at_start(out)
            case "text":
                return self._in_text(out)
            case "tag":
                return self._in_tag(out)
            case "fence":
                return self._in_fence(out)
            case "code":
                return self._in_code(out)

    def _at_start(self, out: list[Found]) -> bool:
        body = self._held.lstrip()
        if body and not body.startswith("{"):
            self._mode = "text"
            return True
        if not body:
            return False
        key = _FIRST_KEY.match(body)
        rest = body[1:].lstrip()
        if (key and key[1] not in _KEYS) or (not key and rest and not rest.startswith('"')):
            self._mode = "text"
            return True
        end = self._scan.end(body)
        if end is None:
            return False
        calls = self._calls(body[:end])
        if calls is None:
            self._mode = "text"
            return True
        self._take(len(self._held) - len(body) + end, calls, out)
        return True

    def _in_text(self, out: list[Found]) -> bool:
        tag = self._held.find(_OPEN)
        fence = next(
            (m for m in _FENCE_OPEN.finditer(self._held) if m.start() or self._line_start), None
        )
        if tag >= 0 and (fence is None or tag < fence.start()):
            self._as_text(tag, out)
            self._mode = "tag"
            return True
        if fence is not None:
            self._as_text(fence.start(), out)
            language = fence[1].strip().lower()
            self._mode = "fence" if language in _LANGUAGES else "code"
            return True
        keep = len(self._held)
        for maybe in (_MAYBE_TAG, _MAYBE_FENCE):
            found = maybe.search(self._held)
            if (
                found
                and found.end() > found.start()
                and (maybe is _MAYBE_TAG or found.start() or self._line_start)
            ):
                keep = min(keep, found.start())
        self._as_text(keep, out)
        return False

    def _in_tag(self, out: list[Found]) -> bool:
        end = self._held.find(_CLOSE, self._search_from(len(_OPEN)))
        if end < 0:
            return False
        end += len(_CLOSE)
        self._settle(end, self._tagged(self._held[:end]), out)
        return True

    def _in_fence(self, out: list[Found]) -> bool:
        head, _, body = self._held.partition("\n")
        start = body.lstrip()
        key = _FIRST_KEY.match(start)
        foreign = key is not None and key[1] not in _KEYS
        if foreign or (start and not start.startswith(("{", "[", "<"))):
            self._mode = "code"
            return True
        if start.startswith("<") and not (start + _OPEN[len(start) :]).startswith(_OPEN):
            self._mode = "code"
            return True
        close = _FENCE_CLOSE.search(self._held, self._search_from(len(head)))
        if close is None or not close[0].endswith("\n"):
            # Without its line end the fence may still turn out to be something else.
            return False
        inside = self._held[len(head) : close.start()].strip()
        calls = self._tagged(inside) if inside.startswith(_OPEN) else self._calls(inside)
        self._settle(close.end(), calls, out)
        return True

    def _in_code(self, out: list[Found]) -> bool:
        """Inside an ordinary block of code: nothing in here is a call."""
        line = self._held.find("\n") if self._held.lstrip(" ").startswith(_FENCE) else -1
        close = _FENCE_CLOSE.search(self._held, max(line, 0))
        if close is not None and close[0].endswith("\n"):
            self._as_text(close.end(), out)
            self._mode = "text"
            return True
        maybe = _MAYBE_CLOSE.search(self._held, max(line, 0))
        self._as_text(maybe.start() if maybe else len(self._held), out)
        return False

    def _search_from(self, least: int) -> int:
        """Where a search for an end has to go on: a mark may have been torn apart, nothing else."""
        start = max(least, self._searched - 32)
        self._searched = len(self._held)
        return start

    def _calls(self, text: str, *, lenient: bool = False) -> list[ToolRequest] | None:
        """The calls that `text` consists of, or None when any part of it is something else."""
        values = _json_values(text)
        if not values:
            return None
        calls = [_as_call(value, self._tools, lenient=lenient) for value in values]
        return None if None in calls else cast("list[ToolRequest]", calls)

    def _tagged(self, text: str) -> list[ToolRequest] | None:
        """The calls of a run of tags, the last of which may lack its end."""
        calls: list[ToolRequest] = []
        for piece in text.split(_OPEN)[1:]:
            body, _, rest = piece.partition(_CLOSE)
            found = self._calls(_unfenced(body), lenient=True)
            if found is None or rest.strip():
                return None
            calls += found
        return calls or None

    def _settle(self, end: int, calls: list[ToolRequest] | None, out: list[Found]) -> None:
        self._mode = "text"
        if calls is None:
            self._as_text(end, out)
        else:
            self._take(end, calls, out)

    def _take(self, end: int, calls: Iterable[ToolRequest], out: list[Found]) -> None:
        out += calls
        self._held = self._held[end:]
        self._searched = 0
        self._scan = _ObjectScan()
        self._line_start = True
        self._after_call = True

    def _as_text(self, end: int, out: list[Found]) -> None:
        text, self._held = self._held[:end], self._held[end:]
        self._searched = 0
        if text:
            out.append(TextDelta(text=text))
            self._line_start = text.endswith("\n")


def _as_call(value: object, tools: frozenset[str], *, lenient: bool) -> ToolRequest | None:
    if not isinstance(value, dict):
        return None
    call = cast("Json", value)
    if not lenient and not _KEYS.issuperset(call):
        return None  # Data that happens to have a name.
    inner = call.get("function")
    if isinstance(inner, dict):
        call = cast("Json", inner)
    name = next((call[key] for key in _NAME_KEYS if isinstance(call.get(key), str)), None)
    if name not in tools:
        return None
    arguments: Any = next((call[key] for key in _ARGUMENT_KEYS if key in call), None)
    if arguments is None and lenient:
        arguments = {}
    if isinstance(arguments, str):
        return ToolRequest(call_id=None, name=name, arguments=arguments)
    if not isinstance(arguments, dict):
        return None
    return ToolRequest(call_id=None, name=name, arguments=orjson.dumps(arguments).decode())


def _json_values(text: str) -> list[object]:
    """The JSON values that `text` consists of, lists opened; empty when it is anything else."""
    values: list[object] = []
    rest = text.strip()
    while rest:
        end = _ObjectScan().end(rest) if rest.startswith("{") else len(rest)
        try:
            value: object = orjson.loads(rest[:end])
        except orjson.JSONDecodeError:
            return []
        if isinstance(value, list):
            values += cast("list[object]", value)
        else:
            values.append(value)
        rest = rest[end:].lstrip(" \t\r\n,;") if end is not None else ""
    return values


class _ObjectScan:
    """Finds where the JSON object at the start of a growing text ends, looking at each character once."""

    def __init__(self) -> None:
        self._at = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def end(self, text: str) -> int | None:
        """The index after the object, or None while it has not ended."""
        for char in text[self._at :]:
            self._at += 1
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif char == "\\":
                    self._escaped = True
                elif char == '"':
                    self._in_string = False
            elif char == '"':
                self._in_string = True
            elif char in "{[":
                self._depth += 1
            elif char in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    return self._at
        return None


def _unfenced(text: str) -> str:
    """`text` without a fence around the whole of it."""
    text = text.strip()
    if not text.startswith(_FENCE):
        return text
    return text.partition("\n")[2].rstrip().removesuffix(_FENCE)


def _merged(found: list[Found]) -> list[Found]:
    """Neighbouring texts as one."""
    out: list[Found] = []
    for each in found:
        last = out[-1] if out else None
        if isinstance(each, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(text=last.text + each.text)
        else:
            out.append(each)
    return out


def describe_tools(tools: Iterable[ToolSpec]) -> str:
    """What a model is told of its tools when its server takes no declarations of them."""
    listed = "\n".join(
        orjson.dumps(
            {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        ).decode()
        for tool in tools
    )
    return (
        "You can call these tools, one JSON description a line:\n"
        f"{listed}\n"
        "To call one, write this and nothing after it, then wait for the result:\n"
        f'{_OPEN}{{"name": "TOOL", "arguments": {{...}}}}{_CLOSE}'
    )


def written_call(name: str, arguments: Json) -> str:
    """An earlier call as the model would have written it."""
    return f"{_OPEN}{orjson.dumps({'name': name, 'arguments': arguments}).decode()}{_CLOSE}"


def written_result(text: str) -> str:
    """A tool's result as text. The closing tag cannot be forged by what the tool printed."""
    safe = text.replace("</tool_result", "<\\/tool_result")
    return f"<tool_result>\n{safe}\n</tool_result>"
