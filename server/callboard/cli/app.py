"""The commands, and the wall that no traceback passes."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version as installed_version
from typing import Annotated, Literal

from cyclopts import (
    App,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
    UnusedCliTokensError,
)

from callboard_rpc.version import PROTOCOL_VERSION

from . import agents, approvals, editor, group, peers, rules, schedules, sessions, store
from .board_demo import demo_group
from .demo import demo
from .diagnose import doctor
from .exits import CommandError, Exit
from .faults import report
from .login import NOT_AN_ARGUMENT, login, logout
from .rooms import members
from .run import run
from .server import StoreOption
from .tail import tail
from .team import demo_agents
from .terminal import open_console, prepare_streams
from .usage import usage


def version() -> int:
    """Print the versions of Callboard, of its protocol and of Python."""
    open_console().print(
        f"callboard {installed_version('callboard')}, protocol {PROTOCOL_VERSION}, "
        f"Python {platform.python_version()}"
    )
    return Exit.OK


def serve(
    *,
    acp: Annotated[bool, Parameter(negative="")] = False,
    framing: Annotated[Literal["auto", "lsp", "ndjson"], Parameter()] = "auto",
    store: StoreOption | None = None,
) -> int:
    """Be the server that an editor talks to, over stdin and stdout.

    It speaks JSON-RPC 2.0. Editors start it; by hand it waits for a client.

    Parameters
    ----------
    acp
        Speak the Agent Client Protocol, as Zed, JetBrains, CodeCompanion, avante, agent-shell and acpx do.
    framing
        `lsp`: Content-Length headers, as language servers have them; `ndjson`: one object a line;
        `auto`: the first byte decides.
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
    for command in (
        run,
        tail,
        members,
        usage,
        demo,
        demo_agents,
        demo_group,
        doctor,
        login,
        logout,
        version,
        serve,
    ):
        app.command(command)
    for family in (sessions, agents, group, schedules, peers, approvals, rules, store, editor):
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
    command = " ".join(error.command_chain or ())
    help = " ".join(("callboard", *(error.command_chain or ()), "--help"))
    hint = f"`{help}` tells what it takes."
    match error:
        case UnknownCommandError(unused_tokens=[str() as unknown, *_]):
            said = f"there is no command {f'{command} {unknown}'.strip()!r}"
            hint = f"`{help}` lists those that there are."
        case UnusedCliTokensError() if command in ("login", "logout"):
            said, hint = "only the provider is expected", NOT_AN_ARGUMENT
        case UnusedCliTokensError(unused_tokens=[_, *_] as extra):
            words = " ".join(extra)
            said = f"{words!r} was not expected: a text of several words goes in quotes"
        case MissingArgumentError(argument=argument, tokens_so_far=[]) if (
            argument is not None and not argument.tokens
        ):
            name = argument.name
            said = f"{name} needs a value" if name.startswith("-") else f"{command} needs {name}"
        case _:
            said = str(error).strip().removesuffix(".")
            said = said[:1].lower() + said[1:]
    return CommandError(said, exit=Exit.USAGE, hint=hint)


def execute(arguments: Sequence[str]) -> int:
    """Runs a command line and returns its exit code. Never raises."""
    prepare_streams()
    try:
        result = build()(_dash_last(group.verb_first(arguments)) or ["--help"])
    except CycloptsError as error:
        return report(_bad_usage(error))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else Exit.FAILED
    except BaseException as fault:
        if os.environ.get("CALLBOARD_DEBUG") == "1":
            raise
        return report(fault)
    return result if isinstance(result, int) else Exit.OK
