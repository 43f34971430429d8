"""``callboard doctor``: what is found, what is missing, and what to do about it."""

from typing import Annotated

from cyclopts import Parameter

from callboard_rpc.common import Json

from .exits import Exit
from .server import StoreOption, server_environment
from .terminal import line, open_console, write_json_line

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "bold red")}


async def doctor(
    *,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Look at what Callboard needs: models, keys, the store, programs. Exit code 1 if something
    that it cannot do without is missing.

    Parameters
    ----------
    json
        Print each finding as a line of JSON.
    """
    from callboard.doctor import examine

    checks = await examine(server_environment(store))
    console = open_console()
    for check in checks:
        if json:
            finding: Json = {"name": check.name, "status": check.status}
            write_json_line({**finding, "found": check.found, "advice": check.advice})
            continue
        mark, style = _MARKS.get(check.status, ("?", "yellow"))
        console.print(line((f"{mark} ", style), (check.name, "bold"), f"  {check.found}"))
        if check.advice:
            console.print(line((f"    {check.advice}", "dim")), soft_wrap=True)
    return Exit.FAILED if any(check.status == "fail" for check in checks) else Exit.OK
