"""``AGENTS.md``: what a project tells agents, from the workspace's root down to a folder (PROTOCOL 7).

The text is from an untrusted workspace: it shapes what an agent does and gives it no rights.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

NAMES: Final = ("AGENTS.md",)
MAX_FILE_BYTES: Final = 32 * 1024
MAX_TOTAL_BYTES: Final = 96 * 1024
MAX_DEPTH: Final = 64


@frozen(kw_only=True)
class Instruction:
    """One file. `relative` is its path below the root; `truncated`: there was more than fits."""

    path: str
    relative: str
    text: str
    truncated: bool = False


@frozen(kw_only=True)
class Instructions:
    """The files in order, the root's first, and why others were left out."""

    files: tuple[Instruction, ...] = ()
    warnings: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.files)

    def render(self) -> str:
        """The text for a system prompt; empty without files."""
        parts: list[str] = []
        for file in self.files:
            folder = file.relative.rpartition("/")[0]
            about = f"files below {folder}/" if folder else "the whole project"
            note = "\n(The rest of the file is left out.)" if file.truncated else ""
            parts.append(f"## {file.relative} (about {about})\n\n{file.text.strip()}{note}")
        if not parts:
            return ""
        head = (
            "# Instructions of this project\n\n"
            "Where two of them disagree, the later one, nearer to the files in question, holds."
        )
        return "\n\n".join((head, *parts))


def read_instructions(
    root: Path, directory: Path | None = None, names: Iterable[str] = NAMES
) -> Instructions:
    """The instruction files in `root` and in every folder from there down to `directory`.

    Blocks on the disk. Links that lead outside of `root` are not followed, a `directory` outside of
    it counts as `root`. When there is more than `MAX_TOTAL_BYTES`, the files nearest to `directory`
    are kept.
    """
    try:
        top = root.resolve()
        target = top if directory is None else directory.resolve()
    except (OSError, RuntimeError) as fault:
        return Instructions(warnings=(f"{root}: cannot be read: {fault}",))
    wanted = tuple(names)
    warnings: list[str] = []
    found: list[Instruction] = []
    left = MAX_TOTAL_BYTES
    for folder in _nearest_first(top, target):
        for name in reversed(wanted):
            path = folder / name
            try:
                data = _contained(path, top)
            except _LeftOut as why:
                warnings.append(f"{path}: {why}")
                continue
            if data is None:
                continue
            if left <= 0:
                warnings.append(
                    f"{path}: left out; the files below it fill {MAX_TOTAL_BYTES} bytes"
                )
                continue
            most = min(MAX_FILE_BYTES, left)
            try:
                text = _decoded(data, most)
            except UnicodeDecodeError:
                warnings.append(f"{path}: left out; it is not UTF-8")
                continue
            if text.strip():
                left -= len(text.encode())
                found.append(
                    Instruction(
                        path=str(path),
                        relative=path.relative_to(top).as_posix(),
                        text=text,
                        truncated=len(data) > most,
                    )
                )
    return Instructions(files=tuple(reversed(found)), warnings=tuple(reversed(warnings)))


class _LeftOut(Exception):
    """Why a file that is there is not read."""


def _nearest_first(top: Path, target: Path) -> list[Path]:
    if not target.is_relative_to(top):
        return [top]
    parts = target.relative_to(top).parts[:MAX_DEPTH]
    return [top.joinpath(*parts[:count]) for count in range(len(parts), -1, -1)]


def _contained(path: Path, top: Path) -> bytes | None:
    """Up to a byte more than may be used; None when there is no such file."""
    try:
        if not path.is_symlink() and not path.exists():
            return None
        if not path.resolve(strict=True).is_relative_to(top):
            raise _LeftOut("left out; it leads outside of the workspace")
        if not path.is_file():
            raise _LeftOut("left out; it is not a file")
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except (OSError, RuntimeError) as fault:
        raise _LeftOut(f"cannot be read: {getattr(fault, 'strerror', None) or fault}") from None


def _decoded(data: bytes, most: int) -> str:
    """The first `most` bytes as text, not cutting a character in two. Raises `UnicodeDecodeError`."""
    if len(data) <= most:
        return data.decode("utf-8-sig").replace("\0", "\N{REPLACEMENT CHARACTER}")
    cut = data[:most]
    try:
        text = cut.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        if fault.start < most - 3 or fault.reason != "unexpected end of data":
            raise
        text = cut[: fault.start].decode("utf-8-sig")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
