"""``callboard run``: one prompt, from a terminal or a script."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import anyio.to_thread
from attrs import evolve
from cyclopts import Parameter

from callboard_client import Client, Run
from callboard_rpc.common import Limits, Mode, SessionId
from callboard_rpc.server import ClientCapabilities, ProfileInfo
from callboard_rpc.sessions import Session

from .acquainting import acquaint
from .asking import Approver, Policy
from .exits import CommandError, Exit
from .following import Follower
from .interrupts import Interrupts
from .keys import TerminalKeyboard, person_is_there
from .naming import resolve
from .present import Presenter
from .rooms import agent_of, new_room
from .server import StoreOption, connect
from .terminal import line, open_console

if TYPE_CHECKING:
    from callboard.config import Loaded

_SCRIPT = "scripted/demo"
"""Answers when there is no model."""
_UNLIMITED = 1e12
"""Limits from here on are no limits, and may not fit the wire."""


async def run(
    prompt: str,
    /,
    *,
    cwd: Annotated[Path | None, Parameter(name=["--cwd", "-C"])] = None,
    session: Annotated[str | None, Parameter(name=["--session", "-s"])] = None,
    continue_: Annotated[bool, Parameter(name=["--continue", "-c"], negative=())] = False,
    model: Annotated[str | None, Parameter(name=["--model", "-m"])] = None,
    profile: str | None = None,
    member: Annotated[list[str] | None, Parameter(negative=())] = None,
    roster: str | None = None,
    host: str | None = None,
    to: str | None = None,
    mode: Mode | None = None,
    option: Annotated[list[str] | None, Parameter(negative=())] = None,
    title: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    approve: Literal["ask", "allow", "deny", "rule"] = "ask",
    max_turns: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    timeout: float | None = None,
    store: StoreOption | None = None,
) -> int:
    """Prompt an agent, watch it work, answer what it asks.

    When its turn has ended, this waits for the agents that it has started, and for what their reports
    make it do. Ctrl-C cancels all of it; a second Ctrl-C ends it at once.

    The exit code tells the outcome of its last turn: 0 completed, 1 failed, 2 bad input, 3 something was refused
    because nobody could be asked, or waits for an approval, 124 timed out, 130 cancelled.

    Parameters
    ----------
    prompt
        What the agent is to do; `-` reads it from stdin, `--` goes before one that begins with `-`.
    cwd
        The folder it works in; the current one by default.
    session
        Go on with this session; the beginning of its id is enough.
    continue_
        Go on with the newest session of the folder: the one in which something happened last.
    model
        The model to use, as `provider/name`.
    profile
        The agent definition of a new session.
    member
        An agent that takes part in a new session; given several times, it is a room of several: each answers
        when it is addressed, as @name.
    roster
        A list of agents from the configuration (`rooms.rosters`) that take part in a new session.
    host
        Who of them answers when nobody is addressed; the first, unless told.
    to
        The agent that the prompt is for, whomever it mentions.
    mode
        `work`: reads at will, asks before it changes or runs something; `plan` and `ask`: changes
        and runs nothing.
    option
        What an agent of another maker is to be set to, as `name=value` (`model=NAME`); may be given several times.
        `callboard sessions show` tells what it has, once it was started.
    title
        The session's title.
    json
        Print each event as a line of JSON, and nothing else, on stdout.
    approve
        Who answers approvals: `ask` you at the terminal, `allow` each once, `deny` them all, or
        `rule`: allow only what standing rules allow.
    max_turns
        Steps of the model at the most.
    max_tokens
        Tokens at the most.
    max_cost
        Cost at the most, in the currency of the model's price.
    timeout
        Seconds at the most.
    """
    text = _read_prompt(prompt)
    limits = _limits(max_turns, max_tokens, max_cost, timeout)
    folder = _folder(cwd)
    if session is not None and cwd is not None:
        raise CommandError(
            "--cwd and --session exclude each other: a session keeps its folder", exit=Exit.USAGE
        )
    if session is not None and continue_:
        raise CommandError("--continue and --session exclude each other", exit=Exit.USAGE)
    if profile is not None and (session is not None or continue_):
        raise CommandError(
            "--profile is for a new session: one that goes on keeps its own", exit=Exit.USAGE
        )
    room = new_room(member, roster, host, goes_on=session is not None or continue_)
    options = _options(option or [])
    interrupts = Interrupts()
    code = Exit.CANCELLED
    async with anyio.create_task_group() as tasks:
        await tasks.start(interrupts.watch)
        interrupts.scope = tasks.cancel_scope
        capabilities = ClientCapabilities(approvals=True, deltas=not json)
        async with connect(store, name="run", capabilities=capabilities) as client:
            found = None if session is None else await resolve(client, session)
            if continue_:
                found = await _newest(client, folder)
            if model is None and (found is None or found.model is None):
                asked = found.profile if found else profile or agent_of(room)
                await _tell_of_the_model(client, folder, asked)
            elif model is not None and room is None:
                asked = found.profile if found else profile
                await _refuse_model_of_its_own(client, folder, asked or "default")
            turn = client.run(
                text,
                cwd=folder,
                session_id=None if found is None else found.session_id,
                title=title,
                profile=profile,
                model=model,
                mode=mode,
                limits=limits,
                deltas=not json,
                until="rest",
                room=room,
                to=to,
                options=options,
            )
            async with turn:
                interrupts.scope = None
                await _tell_what_does_not_count(turn.session.cwd)
                code = await _follow(client, turn, interrupts, approve, timeout, json=json)
        tasks.cancel_scope.cancel()
    return code


def _options(given: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise CommandError(f"--option {each!r} is not of the form name=value", exit=Exit.USAGE)
        options[name.strip()] = value.strip()
    return options


async def _follow(
    client: Client,
    turn: Run,
    interrupts: Interrupts,
    policy: Policy,
    timeout_s: float | None,
    *,
    json: bool,
) -> Exit:
    session = turn.session
    console = open_console(stderr=json)
    presenter = None
    if not json:
        presenter = Presenter(
            console=console,
            root=session.session_id,
            hidden_seq=turn.event_seq,
            model=session.model,
        )
        _introduce(presenter, session.session_id)
        if turn.warning is not None:
            presenter.say((f"! {turn.warning}", "yellow"))
        await acquaint(client, presenter, session.session_id)
    approver = Approver(
        root=session.root_id,
        policy=policy,
        console=console,
        presenter=presenter,
        keyboard=TerminalKeyboard() if person_is_there() else None,
    )
    follower = Follower(
        client=client,
        run=turn,
        approver=approver,
        presenter=presenter,
        interrupts=interrupts,
        timeout_s=timeout_s,
    )
    return await follower.follow()


async def _newest(client: Client, folder: Path) -> Session:
    """The session of `folder` in which something happened last, and that can go on."""
    async for session in client.sessions.list(cwd=folder):
        if not session.closed:
            return session
    raise CommandError(
        f"there is no session in {folder} to go on with",
        exit=Exit.USAGE,
        hint="Leave --continue out to begin one; `callboard sessions list` shows those elsewhere.",
    )


async def _load_configuration(folder: str) -> "Loaded":
    from callboard.config import load, user_config_dir

    return await anyio.to_thread.run_sync(
        load, os.environ, user_config_dir(os.environ), Path(folder)
    )


async def _tell_what_does_not_count(folder: str) -> None:
    """What is wrong in the configuration, on stderr: the turn goes on without it."""
    loaded = await _load_configuration(folder)
    console = open_console(stderr=True)
    for warning in loaded.warnings:
        console.print(line((f"! {warning}", "yellow")), soft_wrap=True)


async def _tell_of_the_model(client: Client, folder: Path, profile: str | None) -> None:
    """Before a session is made: on stderr, why the built-in script answers and no model, when it does.

    Raises `CommandError` when the model that was asked for cannot be used.
    """
    info = await client.server.info()
    if info.model is not None and info.model != _SCRIPT:
        return
    settings = (await _load_configuration(str(folder))).settings
    if info.model is not None and settings.model == _SCRIPT:
        return  # it was chosen
    named = profile or settings.profile or "default"
    agent = await _profile_named(client, folder, named)
    if agent is None:
        return  # it is refused, which says more than what model would answer
    if agent.model is not None or agent.kind == "acp":
        return  # this agent brings its own
    if info.model is None:
        raise CommandError(
            info.model_source or "there is no model that could be used",
            exit=Exit.USAGE,
            hint="--model chooses another; `callboard doctor` tells which were found.",
        )
    why = f"! {info.model} answers: {info.model_source}"
    open_console(stderr=True).print(line((why, "yellow")), soft_wrap=True)


async def _profile_named(client: Client, folder: Path, name: str) -> ProfileInfo | None:
    async for each in client.profiles.list(cwd=folder):
        if each.name == name:
            return each
    return None


async def _refuse_model_of_its_own(client: Client, folder: Path, profile: str) -> None:
    """Raises `CommandError` for an agent that would not heed ``--model``."""
    agent = await _profile_named(client, folder, profile)
    if agent is not None and agent.kind == "acp":
        raise CommandError(
            f"the agent {profile!r} has models of its own, which --model does not choose from",
            exit=Exit.USAGE,
            hint="--option model=NAME does, where the agent has such an option; `callboard sessions show` tells.",
        )


def _introduce(presenter: Presenter, session_id: SessionId) -> None:
    presenter.say((f"session {session_id}", "dim"))


def _read_prompt(prompt: str) -> str:
    text = prompt
    if prompt == "-":
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise CommandError("there is no stdin to read the prompt from", exit=Exit.USAGE)
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise CommandError("the prompt is empty: say what the agent is to do", exit=Exit.USAGE)
    # Bytes of the command line that are no UTF-8 arrive as lone surrogates.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _folder(cwd: Path | None) -> Path:
    folder = (cwd or Path.cwd()).absolute()
    if not folder.is_dir():
        raise CommandError(f"--cwd {folder}: there is no such folder", exit=Exit.USAGE)
    return folder


def _limits(
    turns: int | None, tokens: int | None, cost: float | None, timeout_s: float | None
) -> Limits | None:
    given = {
        "--max-turns": turns,
        "--max-tokens": tokens,
        "--max-cost": cost,
        "--timeout": timeout_s,
    }
    for name, value in given.items():
        if value is not None and not 0 < value < _UNLIMITED:
            raise CommandError(
                f"{name} must be more than 0 and less than {_UNLIMITED:g}, is {value:g}",
                exit=Exit.USAGE,
            )
    if all(value is None for value in given.values()):
        return None
    limits = Limits(turns=turns, tokens=tokens, cost=cost)
    return limits if timeout_s is None else evolve(limits, timeout_ms=max(int(timeout_s * 1000), 1))
