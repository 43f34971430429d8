"""The five answers that a person is offered, and the rule that a standing answer makes."""

import posixpath
import re
from typing import Final

from attrs import frozen

from callboard_rpc.approvals import ApprovalOption, OptionKind, RuleScope

from ..tools.base import Preview, Tool
from .patterns import EXACT, relative_to, simple_of
from .shell import Simple
from .wrappers import ASSIGNMENT, SHELLS, program_name

_LONGEST_NAME = 60

_RUN_ANYTHING: Final = SHELLS | {
    "python", "python2", "python3", "pypy", "pypy3", "node", "nodejs", "deno", "bun", "ruby", "perl",
    "php", "lua", "tclsh", "osascript", "pwsh", "powershell", "cmd", "r", "rscript", "java", "irb",
    "env", "xargs", "exec", "eval", "command", "builtin", "source", ".", "nohup", "nice", "time",
    "timeout", "stdbuf", "setsid", "watch", "parallel", "flock", "entr", "strace", "script", "expect",
    "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "socat", "telnet", "curl", "wget", "http",
    "find", "fd", "awk", "gawk", "mawk", "sed", "ed", "ex", "vi", "vim", "nvim", "emacs", "tar",
    "make", "tee", "sudo", "su", "doas", "pkexec", "rm", "rmdir", "unlink", "shred", "mv", "cp", "ln",
    "install", "dd", "chmod", "chown", "chgrp", "kill", "pkill", "killall", "truncate", "crontab",
    "at", "systemctl", "service", "launchctl", "mount", "umount", "npx", "bunx", "pnpx", "uvx", "pipx",
}  # fmt: skip
"""Programs whose bare name as a prefix would allow anything, or a lasting loss: only the exact command."""

_SUBCOMMANDS: Final = frozenset(
    ["npm", "pnpm", "yarn", "git", "hg", "svn", "gh", "glab", "cargo", "go", "rustup", "pip", "pip3",
     "uv", "poetry", "pdm", "hatch", "conda", "gem", "bundle", "rake", "composer", "mix", "dotnet",
     "gradle", "gradlew", "mvn", "mvnw", "sbt", "just", "task", "docker", "podman", "kubectl", "helm",
     "terraform", "aws", "gcloud", "az", "brew", "apt", "apt-get", "dnf", "yum", "pacman", "nix",
     "flutter", "dart", "swift", "xcodebuild", "zig", "cmake", "ninja", "meson", "nox", "tox"]
)  # fmt: skip
"""Programs whose first word says what they do."""

_RUN_NAMED: Final = frozenset(
    ["run", "run-script", "compose", "stash", "remote", "worktree", "tool"]
)
"""Subcommands whose own next word says what they do."""

_EXACT_SUBCOMMANDS: Final = frozenset(
    ["exec", "x", "dlx", "install", "i", "add", "ci", "publish", "login", "config", "push", "reset",
     "clean", "rebase", "filter-branch", "filter-repo", "gc", "submodule", "bisect", "delete", "destroy",
     "apply", "remove", "uninstall", "upgrade", "update", "rm", "prune", "cp", "api", "eval", "shell",
     "sh", "ssh", "proxy", "edit", "create", "deploy", "release", "secret", "auth", "alias"]
)  # fmt: skip
"""Subcommands that run, fetch, publish or lose what the pattern would not name."""

_PLAIN_WORD = re.compile(r"[A-Za-z0-9][\w:.@/-]*")


@frozen(kw_only=True)
class Suggestion:
    """What a standing answer covers. `pattern` None: every call of the tool. `shown` is for people."""

    tool: str
    pattern: str | None
    shown: str


def suggest_rule(
    tool: Tool, preview: Preview, scope: RuleScope, roots: tuple[str, ...]
) -> Suggestion:
    """The rule for "allow for this session" or "always": wide enough to be of use, and no wider.

    A command gives its first words, but never a program that would run anything; then the command
    itself. Changed files give, for a session, every file of the workspace, and for ever only the
    folder that they lie in. Tools that share a name for their permission share the rule, too.
    """
    if preview.command is not None:
        pattern = command_pattern(preview.command)
        return Suggestion(tool=tool.name, pattern=pattern, shown=_shown_command(pattern))
    relative = [relative_to(path, roots) for path in preview.paths]
    inside = [r for r in relative if r is not None]
    if tool.effect != "write" or not inside or len(inside) != len(relative):
        name = tool.permission or tool.name
        return Suggestion(tool=name, pattern=None, shown=name)
    if scope == "session":
        return Suggestion(
            tool=tool.name, pattern="**", shown=f"{tool.name} on every file of the workspace"
        )
    pattern = _path_pattern(inside)
    return Suggestion(
        tool=tool.name, pattern=pattern, shown=f"{tool.name} on {pattern.lstrip('/')}"
    )


def command_pattern(command: str) -> str:
    """The pattern that stands for `command` from now on."""
    simple = simple_of(command)
    if simple is None or len(simple.words) > 100:
        return EXACT + command.strip()
    words = _telling_words(simple)
    if not words or any(_needs_quotes(word) for word in words):
        return EXACT + command.strip()
    return " ".join(words)


def _telling_words(simple: Simple) -> tuple[str, ...]:
    """The first words that say what the command does; none when that takes the whole of it."""
    words = simple.words
    program = words[0]
    if "/" in program or "\\" in program:
        return ()  # what lies there can change
    if program_name(program) in ("python", "python3") and words[1:2] == ("-m",) and len(words) > 2:
        module = words[2]
        return words[:3] if module in ("pytest", "unittest", "mypy", "ruff", "black") else ()
    if program_name(program) in _RUN_ANYTHING:
        return ()
    if program_name(program) not in _SUBCOMMANDS:
        return words[:1]
    if len(words) < 2 or not _PLAIN_WORD.fullmatch(words[1]) or words[1] in _EXACT_SUBCOMMANDS:
        return ()
    if words[1] not in _RUN_NAMED:
        return words[:2]
    named = words[2] if len(words) > 2 else ""
    if (
        not _PLAIN_WORD.fullmatch(named)
        or program in ("docker", "podman", "kubectl", "go", "dotnet")
        or program_name(named) in _RUN_ANYTHING
        or named in _EXACT_SUBCOMMANDS
    ):
        return ()
    return words[:3]


def _needs_quotes(word: str) -> bool:
    return (
        not re.fullmatch(r"[\w@%+=:,./-]+", word)
        or ASSIGNMENT.match(word) is not None
        or word == "*"
    )


def _shown_command(pattern: str) -> str:
    exact = pattern.startswith(EXACT)
    text = pattern[1:] if exact else pattern
    text = " ".join(text.split())
    if len(text) > _LONGEST_NAME:
        text = text[: _LONGEST_NAME - 1] + "…"
    return f"exactly `{text}`" if exact else f"commands that start with `{text}`"


def _path_pattern(relative: list[str]) -> str:
    folders = {posixpath.dirname(path) for path in relative}
    if len(folders) == 1 and "" not in folders:
        return f"/{_escaped(folders.pop())}/**"
    if len(relative) == 1:
        return f"/{_escaped(relative[0])}"
    common = posixpath.commonpath(relative)
    return f"/{_escaped(common)}/**" if common else "/**"


def _escaped(path: str) -> str:
    return re.sub(r"([\\*?\[\]! #])", r"\\\1", path)


def options_for(
    tool: Tool, preview: Preview, roots: tuple[str, ...], *, forced: bool = False
) -> tuple[ApprovalOption, ...]:
    """The answers on offer, each saying what it will do; `option_id` is the kind.

    `forced`: the call asks whatever rules say (`Decision.forced`), so that a standing "allow" would
    be a promise not kept; those two are left out.
    """
    session = suggest_rule(tool, preview, "session", roots).shown
    always = suggest_rule(tool, preview, "workspace", roots).shown
    options: list[tuple[OptionKind, str]] = [("allow_once", "Allow once")]
    if not forced:
        options.append(("allow_session", f"Allow {session} for this session"))
        options.append(("allow_always", f"Always allow {always} in this workspace"))
    options.append(("reject_once", "Reject"))
    options.append(("reject_always", f"Always reject {always} in this workspace"))
    return tuple(ApprovalOption(option_id=kind, name=name, kind=kind) for kind, name in options)
