"""Running lifecycle hooks: the commands that the person's own configuration names for an event.

Each gets one JSON object on its input, runs in a process group of its own beside the configuration
file, without secrets in its environment, within a limit of time and output, and is ended as a tree.
Which commands there are is settled when a run begins; an edit applies to the next one.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from attrs import evolve, field, frozen

from callboard_rpc.common import Json

from ..config import Settings
from ..config.hooks import HookCommand
from ..log.redact import Redactor
from ..log.text import all_well_formed
from ..tools.command import shell
from ..tools.environment import CALM
from ..tools.processes import ProcessLost, run_process
from .state import (
    OBSERVED,
    SETTINGS,
    UNDISPUTED,
    Decision,
    Finding,
    HookEvent,
    Ran,
    applies,
    finding,
    together,
)

_log = logging.getLogger(__name__)

OUTPUT_BYTES = 64 * 1024
"""How much of each stream of a command is read."""
_MAX_TEXT = 64 * 1024
"""Characters of each text that a hook is told."""


@frozen(kw_only=True)
class HookSpace:
    """Where and how the hooks of one host run. `folder` is where the user's configuration lies, so that
    a relative path means what stands beside it, never something in a workspace."""

    folder: Path
    environment: Mapping[str, str]
    redactor: Redactor
    new_id: Callable[[str], str]
    spawn: Callable[[Callable[[], Awaitable[None]], str], None]

    def of(
        self,
        settings: Settings,
        *,
        session_id: str,
        cwd: str,
        touch: Callable[[], None] = lambda: None,
        **about: Any,
    ) -> "Lifecycle":
        """The hooks of a session as they are configured now. `about` is told to each of them."""
        commands: dict[HookEvent, tuple[HookCommand, ...]] = {
            event: given
            for event, key in SETTINGS.items()
            if (given := getattr(settings.hooks, key))
        }
        if not commands:
            return NO_HOOKS
        about = {"sessionId": session_id, "cwd": cwd, **about}
        return Lifecycle(space=self, commands=commands, about=about, touch=touch)

    async def run(self, command: HookCommand, told: bytes, cwd: str) -> Ran:
        """Runs one command to its end. Raises `OSError` and `ValueError` when it cannot be started, and
        `ProcessLost`."""
        environment = {**self.environment, **CALM, "CALLBOARD_CWD": cwd}
        argv = (
            (shell(environment.get("PATH")), "-c", command.command)
            if isinstance(command.command, str)
            else command.command
        )
        stdout, stderr = _Kept(), _Kept()
        ended = await run_process(
            argv,
            cwd=self.folder,
            environment=environment,
            mark=self.new_id("hook"),
            time_limit_s=command.timeout_ms / 1000,
            feed=stdout.feed,
            feed_errors=stderr.feed,
            given=told,
        )
        return Ran(
            exit_code=ended.exit_code,
            stdout=bytes(stdout.data),
            stderr=bytes(stderr.data),
            timed_out=ended.timed_out,
            cut=stdout.cut,
        )


class _Kept:
    """The beginning of a stream; the rest is read and dropped."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.cut = False

    def feed(self, data: bytes) -> None:
        room = OUTPUT_BYTES - len(self.data)
        self.data += data[:room]
        self.cut = self.cut or len(data) > room


@frozen(kw_only=True)
class Lifecycle:
    """The hooks of one run, as they were configured when it began. `touch` marks progress."""

    space: HookSpace | None = None
    commands: Mapping[HookEvent, tuple[HookCommand, ...]] = field(
        factory=dict[HookEvent, tuple[HookCommand, ...]]
    )
    about: Json = field(factory=dict[str, Any])
    touch: Callable[[], None] = lambda: None

    def knows(self, event: HookEvent) -> bool:
        """Whether there is any command for the event; most runs have none at all."""
        return event in self.commands

    async def ask(self, event: HookEvent, *, tool: str | None = None, **data: Any) -> Decision:
        """Runs the event's commands in order, up to the first that objects (all of them, when nothing
        can be decided any more), and says what they decided."""
        findings: list[Finding] = []
        for command in self.commands.get(event, ()):
            if not applies(command, tool):
                continue
            if tool is not None:
                data["tool"] = tool
            findings.append(await self._run(event, command, data))
            if findings[-1].block is not None and event not in OBSERVED:
                break
        return together(event, findings) if findings else UNDISPUTED

    def tell(self, event: HookEvent, **data: Any) -> None:
        """Runs the event's commands while everything else goes on."""
        space = self.space
        if space is not None and self.knows(event):

            async def run() -> None:
                await self.ask(event, **data)

            space.spawn(run, f"{event} hooks of {self.about.get('sessionId')}")

    def _bounded(self, data: Mapping[str, Any]) -> Json:
        """Texts that are not too long for a hook, cut when their secrets are gone; anything else as it
        is."""
        assert self.space is not None
        redact = self.space.redactor.text
        return {
            key: redact(each)[:_MAX_TEXT] if isinstance(each, str) else each
            for key, each in data.items()
        }

    async def _run(
        self, event: HookEvent, command: HookCommand, data: Mapping[str, Any]
    ) -> Finding:
        assert self.space is not None
        told = {"event": event, **self.about, **self._bounded(data)}
        text = self.space.redactor.json_text(orjson.dumps(all_well_formed(told)).decode())
        self.touch()
        try:
            ran = await self.space.run(command, text.encode(), str(self.about.get("cwd", "")))
            found = finding(_without_secrets(ran, self.space.redactor))
        except (OSError, ValueError) as fault:
            reason = fault.strerror if isinstance(fault, OSError) else None
            found = Finding(fault=f"it could not be started: {reason or type(fault).__name__}")
        except ProcessLost as lost:
            found = Finding(fault=f"it could not be seen to its end, and was killed: {lost}")
        self.touch()
        if found.fault is not None:
            _log.warning(
                "a %s hook of session %s decides nothing, since %s",
                event, self.about.get("sessionId"), self.space.redactor.text(found.fault),
            )  # fmt: skip
        return evolve(found, block=_plain(found.block), context=_plain(found.context))


def _without_secrets(ran: Ran, redactor: Redactor) -> Ran:
    """What a command printed, before anything is cut of it: nobody would know half of a secret. Bytes
    that are no text stay as they are."""
    stdout, stderr = (each.decode("utf-8", "surrogateescape") for each in (ran.stdout, ran.stderr))
    return evolve(
        ran,
        stdout=redactor.json_text(stdout).encode("utf-8", "surrogateescape"),
        stderr=redactor.text(stderr).encode("utf-8", "surrogateescape"),
    )


def _plain(text: str | None) -> str | None:
    return None if text is None else text.replace("\0", "")


NO_HOOKS = Lifecycle()
"""What a run without hooks goes by."""
