"""``callboard rules``: the standing answers, and how to take one back."""

from pathlib import Path
from typing import Annotated

import anyio
from cyclopts import App, Parameter
from rich.console import Console

from callboard_client import Client
from callboard_client.terminal_text import clean_line
from callboard_rpc.approvals import Rule
from callboard_rpc.convert import unstructure

from .exits import CommandError, Exit
from .naming import RULES
from .server import StoreOption, connect_existing
from .terminal import line, open_console, write_json_line
from .wording import local_time

app = App(name="rules", help="List and remove the rules that standing answers have made.")

_EFFECT_STYLES = {"allow": "green", "ask": "yellow", "deny": "red"}


@app.command(name="list")
async def list_rules(
    *,
    cwd: Annotated[Path | None, Parameter(name=["--cwd", "-C"])] = None,
    all: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """List the rules that hold in a folder, oldest first: what is allowed or denied there unasked.

    Parameters
    ----------
    cwd
        The folder; the current one by default.
    all
        The rules of all folders and sessions.
    json
        One JSON object a line.
    """
    if all and cwd is not None:
        raise CommandError("--all and --cwd exclude each other", exit=Exit.USAGE)
    folder = None if all else (cwd or Path.cwd()).absolute()
    async with connect_existing(store, name="rules") as client:
        rules = await _rules(client)
        shown = rules if folder is None else await _holding_in(client, rules, folder)
    if json:
        for rule in shown:
            write_json_line(unstructure(rule))
        return Exit.OK
    console = open_console()
    if not shown:
        words = "There are no rules." if all or not rules else f"No rule holds in {folder}."
        console.print(line(words), soft_wrap=True)
        if len(rules) > len(shown):
            console.print(line(("`callboard rules list --all` shows those elsewhere.", "dim")))
        return Exit.OK
    for rule in shown:
        _print(console, rule)
    console.print(line(("To revoke one: callboard rules remove RULE", "dim")), soft_wrap=True)
    return Exit.OK


def _print(console: Console, rule: Rule) -> None:
    effect = (rule.effect, _EFFECT_STYLES.get(rule.effect, ""))
    head = line((rule.rule_id, "bold"), "  ", effect, f" {_what(rule)}")
    console.print(head, soft_wrap=True)
    where = f"    {_where(rule)}, since {local_time(rule.created_at)}"
    console.print(line((where, "dim")), soft_wrap=True)


@app.command
async def remove(rule: str, /, *, store: StoreOption | None = None) -> int:
    """Remove a rule: what it allowed or denied is asked about again, from the next call on.

    Parameters
    ----------
    rule
        Its id, or the beginning of it.
    """
    RULES.wanted(rule)  # needs no server
    async with connect_existing(store, name="rules") as client:
        found = RULES.pick(rule, {each.rule_id: each for each in await _rules(client)})
        removed = await client.approvals.remove_rule(found.rule_id)
    words = f": {removed.effect} {_what(removed)}, {_where(removed)}"
    open_console().print(line("removed ", removed.rule_id, (words, "dim")), soft_wrap=True)
    return Exit.OK


async def _rules(client: Client) -> list[Rule]:
    return [rule async for rule in client.approvals.rules()]


async def _holding_in(client: Client, rules: list[Rule], folder: Path) -> list[Rule]:
    """Those that could decide about a call in `folder`: its own, its sessions', and the global ones."""
    names = {str(folder), str(await anyio.Path(folder).resolve())}
    sessions: set[str] = set()
    if any(rule.scope == "session" for rule in rules):
        for archived in (None, True):
            async for session in client.sessions.list(cwd=folder, archived=archived):
                sessions.add(session.session_id)
    return [
        rule
        for rule in rules
        if rule.scope == "global" or rule.workspace in names or rule.session_id in sessions
    ]


def _what(rule: Rule) -> str:
    tool = "every tool" if rule.tool == "*" else rule.tool
    return clean_line(tool if rule.pattern is None else f"{tool}({rule.pattern})")


def _where(rule: Rule) -> str:
    match rule.scope:
        case "session":
            return clean_line(f"in session {rule.session_id}")
        case "workspace":
            return clean_line(f"in {rule.workspace}")
        case "global":
            return "everywhere"
