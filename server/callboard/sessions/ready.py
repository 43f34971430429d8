"""Agents of other makers that need no file: where the program of one is found, there is a profile of its name. A file
of the person's with that name wins."""

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Sequence
from typing import Final

from attrs import frozen

from .profiles import Profile, ProfileBook


@frozen(kw_only=True)
class _Ready:
    """`commands` are those by which it is started, the best one first; `login` is what a person runs to log in."""

    name: str
    what: str
    commands: tuple[tuple[str, ...], ...]
    login: str


READY: Final = (
    _Ready(name="gemini", what="Gemini CLI", commands=(("gemini", "--acp"),), login="gemini"),
    _Ready(name="codex", what="Codex", commands=(("codex-acp",),), login="codex login"),
    _Ready(
        name="claude",
        what="Claude Code",
        commands=(("claude-agent-acp",), ("claude-code-acp",)),
        login="claude auth login",
    ),
    _Ready(
        name="opencode",
        what="OpenCode",
        commands=(("opencode", "acp"),),
        login="opencode auth login",
    ),
    _Ready(name="goose", what="Goose", commands=(("goose", "acp"),), login="goose configure"),
    _Ready(name="vibe", what="Mistral Vibe", commands=(("vibe-acp",),), login="vibe --setup"),
    _Ready(name="kimi", what="Kimi", commands=(("kimi", "acp"),), login="kimi login"),
)
_LAUNCHERS: Final = frozenset({"npx", "bunx", "pnpm", "node", "bun", "uvx", "uv", "pipx", "env"})
"""Programs that run another one, which an argument names."""
_INTERPRETER: Final = re.compile(r"python[\d.]*|perl|ruby|sh|bash|deno")
_LONGEST_LINE: Final = 300
_SUFFIX: Final = re.compile(r"(?<=.)@.*|\.(?:cmd|exe|bat|js|mjs)$", re.IGNORECASE)


def login_command(command: Sequence[str]) -> str | None:
    """What a person runs to log in to the agent that `command` starts, where it is one of those that are known."""
    first, *rest = map(_program, command)
    for word in (first, *rest) if first in _LAUNCHERS else (first,):
        for each in READY:
            if word in (program for program, *_ in each.commands):
                return each.login
    return None


def program_line(command: Sequence[str]) -> str:
    """What a person types to start the program that `command` starts, without its arguments: of one that runs another,
    up to the other's name."""
    first, *rest = command
    if _program(first) in _LAUNCHERS or _INTERPRETER.fullmatch(_program(first)):
        named = next((at for at, word in enumerate(rest) if not word.startswith("-")), None)
        if named is not None:
            line = shlex.join((first, *rest[: named + 1]))
            return line if len(line) <= _LONGEST_LINE and line.isprintable() else first
    return first


def _program(word: str) -> str:
    """The name of a program, or of a package that has it, without its place and its version."""
    return _SUFFIX.sub("", word.replace("\\", "/").rpartition("/")[2])


def ready_profiles(search_path: str) -> tuple[Profile, ...]:
    """Those whose programs are on `search_path`."""
    return tuple(_found(search_path))


def _found(search_path: str) -> Iterable[Profile]:
    for each in READY:
        for command in each.commands:
            program = shutil.which(command[0], path=search_path or os.devnull)
            if program is not None:
                yield Profile(
                    name=each.name,
                    description=f"{each.what}, as it is installed here ({program}).",
                    prompt="",
                    source="builtin",
                    kind="acp",
                    command=(program, *command[1:]),
                )
                break


def with_ready(book: ProfileBook, search_path: str) -> ProfileBook:
    """The book, with those that the person has no file for. A workspace cannot take one away, or its place."""
    profiles, warnings = dict(book.profiles), list(book.warnings)
    for profile in ready_profiles(search_path):
        there = profiles.get(profile.name)
        if there is not None and there.source != "workspace":
            continue
        if there is not None:
            warnings.append(
                f"{there.path}: {profile.name!r} is an agent that is installed here, which a workspace may not "
                "change; it is ignored"
            )
        profiles[profile.name] = profile
    absent = {each.name: _absence(each) for each in READY if each.name not in profiles}
    return ProfileBook(profiles, tuple(warnings), absent)


def _absence(ready: _Ready) -> str:
    programs = " or ".join(command[0] for command in ready.commands)
    return (
        f"{ready.what} is found by its program {programs}, which is not on the PATH of the server"
    )
