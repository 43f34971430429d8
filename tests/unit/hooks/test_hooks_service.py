"""A hook whose command goes wrong decides nothing, whatever it is that goes wrong (execution 50)."""

import errno
import logging
import os
from pathlib import Path

import pytest

from callboard.config.hooks import HookCommand
from callboard.hooks.service import HookSpace, Lifecycle
from callboard.hooks.state import UNDISPUTED
from callboard.log.redact import Redactor

pytestmark = pytest.mark.anyio


async def test_execution_50_a_hook_that_cannot_be_seen_to_its_end_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def blind() -> list[int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("psutil.pids", blind)
    space = HookSpace(
        folder=tmp_path,
        environment={"PATH": "/usr/bin:/bin"},
        redactor=Redactor(),
        new_id=lambda kind: f"{kind}_1",
        spawn=lambda run, name: None,
    )
    command = HookCommand(command="sleep 61.1", timeout_ms=200)
    hooks = Lifecycle(space=space, commands={"PreToolUse": (command,)}, about={"sessionId": "s"})
    with caplog.at_level(logging.WARNING, "callboard.hooks"):
        assert await hooks.ask("PreToolUse", tool="write_file") == UNDISPUTED
    assert "could not be seen to its end, and was killed: Too many open files" in caplog.text
