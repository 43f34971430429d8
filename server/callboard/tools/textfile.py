"""Text files with the encoding and the line ends that they have, so that a change keeps both."""

import codecs
import os
from pathlib import Path
from typing import Literal, TypeAlias

from attrs import frozen

from . import beneath
from .base import ToolFailure, Workspace
from .display import one_line

TEXT_LIMIT_BYTES = 16 * 1024 * 1024
"""The largest file that is read as a whole."""

_SNIFF_BYTES = 8192
_CHUNK_BYTES = 1024 * 1024

LineEnd: TypeAlias = Literal["\n", "\r\n"]

# Longest first: the UTF-32 mark begins with the UTF-16 one.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class BinaryContent(ValueError):
    """The bytes are not text."""


@frozen(kw_only=True)
class TextForm:
    """How text is spelled as bytes: its encoding, its byte order mark, its prevailing line end."""

    encoding: str = "utf-8"
    mark: bytes = b""
    line_end: LineEnd | None = None
    """None for text of a single line."""


NEW_FILE = TextForm()


@frozen(kw_only=True)
class TextFile:
    """A file's text, exactly as it is (line ends included), and its form."""

    text: str
    form: TextForm
    bytes: int

    @property
    def plain(self) -> str:
        """The text with every line end as ``\\n``: what a model reads and compares with."""
        return self.text.replace("\r\n", "\n") if "\r" in self.text else self.text


def decode(data: bytes) -> TextFile:
    """`data` as text: by its byte order mark, else UTF-8, else latin-1 (which keeps every byte).

    Raises `BinaryContent` for what is not text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return _text_file(data[len(mark) :].decode(encoding), encoding, mark, len(data))
            except UnicodeDecodeError:
                break
    if b"\x00" in data[:_SNIFF_BYTES]:
        raise BinaryContent
    try:
        return _text_file(data.decode("utf-8"), "utf-8", b"", len(data))
    except UnicodeDecodeError:
        return _text_file(data.decode("latin-1"), "latin-1", b"", len(data))


def _text_file(text: str, encoding: str, mark: bytes, size: int) -> TextFile:
    with_return = text.count("\r\n")
    alone = text.count("\n") - with_return
    line_end: LineEnd | None = None
    if with_return or alone:
        line_end = "\r\n" if with_return > alone else "\n"
    return TextFile(
        text=text, form=TextForm(encoding=encoding, mark=mark, line_end=line_end), bytes=size
    )


def in_buffer(text: str, saved: TextFile | None) -> TextFile:
    """`text` as an editor has it, with the form of the file as it is `saved`.

    Editors that join a buffer's lines leave out the end of the last one, and may know no other end than
    ``\\n``: the last one is kept, and where the lines are the same it is the file as it is saved.
    """
    if saved is None:
        form = NEW_FILE
    else:
        form = saved.form
        if text and not text.endswith("\n") and saved.text.endswith("\n"):
            text += form.line_end or "\n"
        if text.replace("\r\n", "\n") == saved.plain:
            return saved
    return _text_file(text, form.encoding, form.mark, len(text.encode("utf-8", "replace")))


def with_line_ends(text: str, line_end: LineEnd | None) -> str:
    """`text` with every line end as `line_end`; unchanged when that is None."""
    if line_end is None:
        return text
    plain = text.replace("\r\n", "\n") if "\r" in text else text
    return plain if line_end == "\n" else plain.replace("\n", line_end)


def encode(text: str, form: TextForm, name: str) -> bytes:
    """`text` (line ends as they shall be) as bytes. `name` is the file's, for the `ToolFailure` that
    a character brings which the file's encoding does not have."""
    try:
        return form.mark + text.encode(form.encoding)
    except UnicodeEncodeError as fault:
        bad = one_line(text[fault.start : fault.start + 1])
        way_out = (
            "use other characters" if form.encoding == "latin-1" else "it is not a character at all"
        )
        raise ToolFailure(
            f"{name} is {form.encoding} text, which has no {bad!r} "
            f"(U+{ord(text[fault.start]):04X}): {way_out}. Nothing was written."
        ) from None


def read(workspace: Workspace, path: Path) -> TextFile:
    """The text file `path` (as resolved).

    Raises `ToolFailure` when it is no regular file, too large, or binary; `OSError` as `open` does.
    """
    name = beneath.shown(workspace, path)
    with beneath.regular_file(workspace, path) as descriptor:
        data = _all_of(descriptor)
    if data is None:
        raise ToolFailure(
            f"{name} is larger than {TEXT_LIMIT_BYTES // 1024**2} MiB, too large to be read as a "
            "whole. Use search_files to find the part that matters."
        )
    try:
        return decode(data)
    except BinaryContent:
        raise ToolFailure(f"{name} is a binary file ({len(data)} bytes), not text.") from None


def _all_of(descriptor: int) -> bytes | None:
    """Everything, or None when it is more than the limit. The size a file claims is not believed."""
    size = os.fstat(descriptor).st_size
    if size > TEXT_LIMIT_BYTES:
        return None
    data = os.read(descriptor, size + 1)
    while chunk := os.read(descriptor, _CHUNK_BYTES):  # it grew, or the system gave less at once
        data += chunk
        if len(data) > TEXT_LIMIT_BYTES:
            return None
    return data
