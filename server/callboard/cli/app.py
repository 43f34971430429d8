"""The commands, and the wall that no traceback passes."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version as installed_version

from cyclopts import App, CycloptsError, UnusedCliTokensError

from callboard_rpc.version import PROTOCOL_VERSION

from . import approvals, rules, sessions, store
from .demo import demo
from .diagnose import doctor
from .exits import CommandError, Exit
from .faults import report
from .run import run
from .tail import tail
from .terminal import open_console, prepare_streams
from .usage import usage


def version() -> int:
    """Print the versions of Callboard, of its protocol and of Python."""
    open_console().print(
        f"callboard {installed_version('callboard')}, protocol {PROTOCOL_VERSION}, "
        f"Python {platform.python_version()}"
    )
    return Exit.OK


def serve() -> int:
    """Be the server that an editor talks to, over stdin and stdout.

    It speaks JSON-RPC 2.0: with Content-Length headers as language servers do, or one object a
    line; the first byte decides. Editors start it; by hand it waits for a client.
    """
    # `callboard serve` is recognised before this module is loaded; only its help comes here.
    return Exit.USAGE


def build() -> App:
    app = App(
        name="callboard",
        help="Hosts AI agents for editors and terminals, over one durable log.",
        version=lambda: installed_version("callboard"),
        version_flags=["--version", "-V"],
        console=open_console(),
        error_console=open_console(stderr=True),
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
        backend="asyncio",
        help_format="markdown",
    )
    for command in (run, tail, usage, demo, doctor, version, serve):
        app.command(command)
    for family in (sessions, approvals, rules, store):
        app.command(family.app)
    return app


def _dash_last(arguments: Sequence[str]) -> list[str]:
    """A lone ``-`` is a prompt, which the parser would take for an option without a name."""
    given = list(arguments)
    if "-" not in given or "--" in given:
        return given
    given.remove("-")
    return [*given, "--", "-"]


def _bad_usage(error: CycloptsError) -> CommandError:
    """What the parser has to say, in the words and the form of every other error."""
    error.verbose = False
    help = "callboard COMMAND --help tells what a command takes."
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        extra = " ".join(error.unused_tokens)
        return CommandError(
            f"{extra!r} was not expected: a text of several words goes in quotes",
            exit=Exit.USAGE,
            hint=help,
        )
    said = str(error).strip()
    return CommandError(
        said if said.endswith("...") else said.removesuffix("."), exit=Exit.USAGE, hint=help
    )


def execute(arguments: Sequence[str]) -> int:
    """Runs a command line and returns its exit code. Never raises."""
    prepare_streams()
    try:
        result = build()(_dash_last(arguments) or ["--help"])
    except CycloptsError as error:
        return report(_bad_usage(error))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else Exit.FAILED
    except BaseException as fault:
        if os.environ.get("CALLBOARD_DEBUG") == "1":
            raise
        return report(fault)
    return result if isinstance(result, int) else Exit.OK
