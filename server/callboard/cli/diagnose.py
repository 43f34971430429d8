"""``callboard doctor``: what is found, what is missing, and what to do about it."""

from typing import Annotated

from cyclopts import Parameter

from callboard_rpc.common import Json

from .exits import Exit
from .server import StoreOption, server_environment
from .terminal import block, line, open_console, write_json_line

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "bold red")}


async def doctor(
    *,
    json: Annotated[bool, Parameter(negative=())] = False,
    verbose: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Look at what Callboard needs: models, keys, the store, programs. Exit code 1 if something
    that it cannot do without is missing.

    Parameters
    ----------
    json
        Print each finding as a line of JSON.
    verbose
        Show all that was said of what is told in short, such as the last words of an agent's program.
    """
    from callboard.doctor import examine

    checks = await examine(server_environment(store))
    console = open_console()
    for check in checks:
        if json:
            finding: Json = {"name": check.name, "status": check.status}
            more = {"more": check.more} if verbose and check.more else {}
            write_json_line({**finding, "found": check.found, "advice": check.advice, **more})
            continue
        mark, style = _MARKS.get(check.status, ("?", "yellow"))
        console.print(line((f"{mark} ", style), (check.name, "bold"), f"  {check.found}"))
        if check.advice:
            console.print(line((f"    {check.advice}", "dim")), soft_wrap=True)
        if verbose and check.more:
            console.print(block(check.more, "dim", indent="      | "), soft_wrap=True)
    return Exit.FAILED if any(check.status == "fail" for check in checks) else Exit.OK
