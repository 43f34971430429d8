"""Patterns of rules: a command's first words, or a glob over paths relative to the workspace.

A command pattern is a prefix of whole words: ``npm test`` covers ``npm test -- --watch`` and not
``npm tests``. With ``=`` in front it is the whole command line, exactly. Allowing and denying are not
mirror images: when in doubt, nothing is allowed and everything is denied.
"""

import functools
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from .shell import Line, Simple, read
from .wrappers import program_name, wrapped

if TYPE_CHECKING:
    import pathspec

EXACT: Final = "="

_LOOSE_WORD = re.compile(r"[^\s;|&()<>\"'`${}\\]+")


@functools.lru_cache(maxsize=256)
def parse_command(line: str) -> Line:
    """`shell.read`, remembered: one call is judged against many rules."""
    return read(line)


def allows_command(patterns: Iterable[str], command: str) -> bool:
    """Whether `patterns` together cover every part of `command`.

    True for a command line that is one of the exact patterns; else only when the line was
    understood completely, holds no substitution, redirection, assignment or variable, and each of
    its simple commands begins with the words of some pattern.
    """
    wanted = list(patterns)
    if any(p.startswith(EXACT) and p[1:].strip() == command.strip() for p in wanted):
        return True
    line = parse_command(command)
    if not line.certain or line.inner or not line.commands:
        return False
    prefixes = [words for words in map(_prefix, wanted) if words]
    return all(
        simple.plain and any(simple.words[: len(p)] == p for p in prefixes)
        for simple in line.commands
    )


def denies_command(pattern: str, command: str) -> bool:
    """Whether `pattern` covers any part of `command`, wherever it stands in it.

    A program counts under any path it can be called by, also when another program runs it, and
    options between the pattern's words do not hide them. What could not be read is searched for
    the pattern's words.
    """
    if pattern.startswith(EXACT):
        exact = pattern[1:].strip()
        if exact == command.strip():
            return True
        only = parse_command(exact).only
        return only is not None and any(c.words == only.words for c in parse_command(command).every)
    line = parse_command(command)
    prefix = _prefix(pattern)
    if not prefix:
        return pattern.strip() in command
    if any(_begins(words, prefix) for simple in line.every for words in wrapped(simple.words)):
        return True
    return not line.certain and _begins_somewhere(loose_words(command), prefix)


def loose_words(command: str) -> tuple[str, ...]:
    """Everything in the text that could be a word, for text that could not be understood."""
    return tuple(_LOOSE_WORD.findall(command))


def _prefix(pattern: str) -> tuple[str, ...]:
    """The words of a command pattern; none when it is no plain command. A last ``*`` says nothing."""
    only = parse_command(pattern).only
    if only is None:
        return ()
    return only.words[:-1] if only.words[-1] == "*" else only.words


def _begins(words: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    if not words or program_name(words[0]) != program_name(prefix[0]):
        return False
    return _follows(words[1:], prefix[1:])


def _follows(words: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether `wanted` come next in `words`, leaving out options and what may be their values."""
    reached = {0}
    for word in wanted:
        waiting, seen = list(reached), set(reached)
        while waiting:
            at = waiting.pop()
            if at < len(words) and words[at].startswith("-"):
                further = {at + 1, at + 2} - seen
                seen |= further
                waiting.extend(further)
        reached = {at + 1 for at in seen if at < len(words) and words[at] == word}
        if not reached:
            return False
    return True


def _begins_somewhere(words: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    return any(_begins(words[start:], prefix) for start in range(len(words)))


def simple_of(command: str) -> Simple | None:
    """The command, when `command` is one plain command and nothing else."""
    return parse_command(command).only


# --- paths ------------------------------------------------------------------------------------------


def relative_to(path: str, roots: tuple[str, ...]) -> str | None:
    """`path` relative to the first root that holds it, with ``/``; None outside of all of them.

    Both are absolute and resolved: this compares text.
    """
    for root in roots:
        bare = root.rstrip("/\\")
        if path in (root, bare):
            return "."
        for separator in {"/", os.sep}:
            if path.startswith(bare + separator):
                return path[len(bare) + 1 :].replace(os.sep, "/")
    return None


def allows_paths(pattern: str, paths: tuple[str, ...], roots: tuple[str, ...]) -> bool:
    """Whether `pattern` covers each of `paths`, all of which lie in a root. No paths: nothing."""
    relative = [relative_to(path, roots) for path in paths]
    return bool(relative) and all(r is not None and _glob(pattern, r) for r in relative)


def denies_paths(pattern: str, paths: tuple[str, ...], roots: tuple[str, ...]) -> bool:
    """Whether `pattern` covers any of `paths`; one outside of the roots is taken as it is."""
    for path in paths:
        relative = relative_to(path, roots)
        if _glob(pattern, relative if relative is not None else path.lstrip("/\\")):
            return True
        if pattern.startswith("/") and _glob(pattern, path.lstrip("/\\")):
            return True
    return False


def _glob(pattern: str, path: str) -> bool:
    spec = _spec(pattern)
    return spec is not None and spec.match_file(path)


@functools.lru_cache(maxsize=512)
def _spec(pattern: str) -> "pathspec.PathSpec[Any] | None":
    """The glob, in the language of .gitignore. A pattern that negates, or is none, matches nothing."""
    import pathspec

    if not pattern.strip() or pattern.startswith("!") or "\n" in pattern:
        return None
    if pattern.startswith("#"):
        pattern = "\\" + pattern
    try:
        return pathspec.PathSpec.from_lines("gitignore", [pattern])
    except ValueError:
        return None
