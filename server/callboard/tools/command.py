"""`run_command`: a shell command in the workspace, with limits on time and output, ended as a tree."""

import functools
import os
import re
import shutil
import signal
from pathlib import Path

from attrs import field, frozen

from callboard_rpc.approvals import CommandSubject, Risk

from .base import Preview, Tool, ToolContext, ToolFailure, ToolOutcome
from .display import one_line, printable
from .environment import CALM
from .output import OutputBuffer
from .paths import resolved
from .printing import TIMED_OUT, Watched, told
from .processes import Ended, ProcessLost, run_process
from .schema import describe
from .terminal import run_in_terminal

_LONGEST_MS = 3_600_000


@frozen(kw_only=True)
class RunCommand:
    command: str = field(
        metadata=describe("The command line, run by bash (or sh). It gets no input.", minLength=1)
    )
    cwd: str | None = field(
        default=None,
        metadata=describe("The folder to run it in, inside the workspace. Default: its root."),
    )
    timeout_ms: int | None = field(
        default=None,
        metadata=describe(
            "Time limit in milliseconds, after which it is ended.", minimum=1, maximum=_LONGEST_MS
        ),
    )


async def _preview(context: ToolContext, arguments: RunCommand) -> Preview:
    cwd = _folder(context, arguments.cwd)
    return Preview(
        title=one_line(arguments.command) or "(blank command)",
        subject=CommandSubject(command=printable(arguments.command), cwd=printable(str(cwd))),
        command=arguments.command,
        paths=(str(cwd),),
        risk=command_risk(arguments.command),
    )


async def _run(context: ToolContext, arguments: RunCommand) -> ToolOutcome:
    cwd = _folder(context, arguments.cwd)
    if not arguments.command.strip():
        raise ToolFailure("command: is blank; give a command line.")
    limit_s = context.command_timeout_s
    if arguments.timeout_ms is not None:
        limit_s = min(arguments.timeout_ms, _LONGEST_MS) / 1000
    environment = {**context.environment, **CALM, "PWD": str(cwd)}
    argv = (shell(environment.get("PATH")), "-c", arguments.command)
    if context.terminals is not None:
        outcome = await run_in_terminal(
            context, context.terminals, argv, cwd=cwd, time_limit_s=limit_s
        )
        if outcome is not None:
            return outcome
    output = OutputBuffer()
    watched = Watched(context.emit)

    def feed(data: bytes) -> None:
        output.feed(data)
        watched.feed(data)

    try:
        ended = await run_process(
            argv,
            cwd=cwd,
            environment=environment,
            mark=context.call_id,
            time_limit_s=limit_s,
            feed=feed,
        )
    except (OSError, ValueError) as fault:
        raise ToolFailure(_not_started(fault)) from None
    except ProcessLost as lost:
        raise ToolFailure(
            f"The command was started, but could not be seen to its end, and was killed: {lost}."
        ) from None
    finally:
        watched.close()
    return await told(
        context,
        output,
        status="timed_out" if ended.timed_out else "ok" if ended.exit_code == 0 else "error",
        exit_code=None if ended.timed_out else ended.exit_code,
        notes=_notes(ended, limit_s),
    )


def _notes(ended: Ended, limit_s: float) -> list[str]:
    notes: list[str] = []
    if ended.timed_out:
        notes.append(TIMED_OUT.format(limit_s))
    elif ended.signal is not None:
        notes.append(f"[ended by signal {_signal_name(ended.signal)}]")
    elif ended.exit_code != 0:
        notes.append(f"[exit code {ended.exit_code}]")
    if ended.background:
        notes.append(
            f"[{ended.background} background process(es) were still running when the command ended, "
            "and were ended too]"
        )
    return notes


def _folder(context: ToolContext, cwd: str | None) -> Path:
    path = resolved(context.workspace, cwd or ".")
    if not path.is_dir():
        raise ToolFailure(f"cwd: {one_line(cwd or '.')} is not a directory of the workspace.")
    return path


@functools.lru_cache(maxsize=8)
def shell(search_path: str | None) -> str:
    """The shell that runs commands: bash where there is one, else sh."""
    return shutil.which("bash", path=search_path) or "/bin/sh"


def _not_started(fault: OSError | ValueError) -> str:
    if isinstance(fault, OSError) and fault.errno == 7:
        return "The command line is too long for the system. Write it to a file with write_file and run that."
    reason = (os.strerror(fault.errno) if fault.errno else "") if isinstance(fault, OSError) else ""
    return f"The command could not be started: {reason or 'it holds characters that no command can have'}."


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


# --- risk -------------------------------------------------------------------------------------
# A help for the person who decides, and for nothing else: a shell can spell anything in many ways.

_PRIVILEGED = r"(sudo|doas|su|pkexec|runas)"
_DESTRUCTIVE = (
    r"(mkfs(\.\w+)?|dd|shred|wipefs|fdisk|parted|shutdown|reboot|halt|poweroff|killall|pkill)"
)
_START = r"(^|[;&|(`\n]|\$\(|\b(xargs|env|nohup|time|exec|command|then|do|else)\s)\s*(\w+=\S*\s+)*([\w./-]*/)?"
_HIGH = re.compile(
    rf"{_START}({_PRIVILEGED}|{_DESTRUCTIVE})(\s|$)"
    rf"|{_START}rm\s+(-\S+\s+)*-(\S*[rRf]|-recursive|-force)"
    rf"|{_START}chmod\s+-R|{_START}chown\s"
    rf"|{_START}git\s+([^;&|]*\s)?(push|reset\s+--hard|clean|filter-branch|update-ref)(\s|$)"
    r"|\b(curl|wget|fetch)\b[^;&\n]*\|\s*(\S*/)?(sudo|ba|z|da|k)?sh\b"
    r"|>\s*/dev/(?!null\b|stdout\b|stderr\b|tty\b)|:\(\)\s*\{|\beval\b|\bbase64\s+(-d|--decode)"
    r"|(^|[\s'\"=/])\.git/(hooks|config)"
)

_JUDGED_CHARS = 4000


def command_risk(command: str) -> Risk:
    """How much a command could break, as far as its words tell; much when it is too long to tell."""
    too_long = len(command) > _JUDGED_CHARS
    return "high" if too_long or _HIGH.search(command) else "medium"


RUN_COMMAND = Tool(
    name="run_command",
    description=(
        "Run a shell command in the workspace and get what it printed (both streams) and its exit "
        "code. It has no terminal, no input, no secrets in its environment, and a time limit; what it leaves "
        "running in the background is ended with it, unless that took a session of its own (setsid). Prefer read_file, list_files, search_files and "
        "edit_file for what they can do."
    ),
    arguments=RunCommand,
    effect="execute",
    kind="execute",
    run=_run,
    preview=_preview,
)
