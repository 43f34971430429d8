"""Logging in: a key is stored in a terminal that the client opens, and the agent that runs goes by it."""

import os
import pty
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from acp_scenes import workspace

from harness.acp import ANEW, EVERYTHING, AcpProcess, RpcError
from harness.process import PATIENCE_S

KEY = "login-key-0123456789abcdef"
TERMINAL = {"auth": {"terminal": True}}
LEGACY = {"_meta": {"terminal-auth": True}}
INSTANT, LOGIN = "callboard", "callboard-login"


def log_in(
    folder: Path, command: list[str], environ: Mapping[str, str], *, typed: str
) -> tuple[int, str]:
    """Runs `command` in a terminal, and types; its exit code, and what it has shown."""
    master, slave = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "TERM": "dumb", **environ}
    process = subprocess.Popen(
        command,
        stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environ, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    shown = b""
    try:
        for asked, answer in ((b"Provider [openai]: ", "\n"), (b"not shown): ", f"{typed}\n")):
            while asked not in shown:
                shown += os.read(master, 65536)
            os.write(master, answer.encode())
        while chunk := _rest(master):
            shown += chunk
        return process.wait(PATIENCE_S), shown.decode()
    finally:
        process.kill()
        os.close(master)


def _rest(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # the other side is closed
        return b""


@pytest.mark.parametrize(
    "capabilities", [{}, LEGACY, {"auth": {}}, {"auth": {"terminal": False}}, {"terminal": True}]
)
def test_a_client_without_a_terminal_to_log_in_is_offered_none(
    tmp_path: Path, capabilities: dict[str, Any]
) -> None:
    with AcpProcess(tmp_path, model="scripted/demo", capabilities=capabilities) as agent:
        assert [method["id"] for method in agent.hello["authMethods"]] == [INSTANT]


def test_a_login_in_a_terminal_is_used_by_the_agent_that_runs(tmp_path: Path) -> None:
    config = {"CALLBOARD_CONFIG_DIR": str(tmp_path / "config")}
    declared = {**EVERYTHING, **TERMINAL}
    with AcpProcess(tmp_path, program=ANEW, environ=config, capabilities=declared) as agent:
        instant, login = agent.hello["authMethods"]
        assert (instant["id"], login["id"]) == (INSTANT, LOGIN)
        assert login["type"] == "terminal" and "_meta" not in login
        with pytest.raises(RpcError) as early:
            agent.call("authenticate", methodId=LOGIN)
        assert early.value.error["code"] == -32000
        assert "callboard login" in early.value.error["message"]

        # as the protocol has it: the configured invocation, and the arguments behind it
        command = [sys.executable, *ANEW, "--acp", *login["args"]]
        assert log_in(tmp_path, command, config, typed="")[0] != 0
        code, shown = log_in(tmp_path, command, config, typed=KEY)
        assert code == 0, shown
        assert KEY not in shown
        kept = tmp_path / "config" / "keys.toml"
        assert kept.read_text() == f'openai = "{KEY}"\n'
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600

        assert agent.call("authenticate", methodId=LOGIN) == {}
        assert agent.call("authenticate", methodId=INSTANT) == {}
        session = agent.new(workspace(tmp_path))
        assert session
        agent.close()
        assert KEY not in str(agent.seen) + agent.stderr()


def test_an_older_client_is_told_a_command_that_does_the_same(tmp_path: Path) -> None:
    config = {"CALLBOARD_CONFIG_DIR": str(tmp_path / "config")}
    declared = {**EVERYTHING, **TERMINAL, **LEGACY}
    with AcpProcess(tmp_path, environ=config, capabilities=declared) as agent:
        _, login = agent.hello["authMethods"]
        told = login["_meta"]["terminal-auth"]
        assert told["label"] and Path(told["command"]).is_absolute()
        # a folder's own module of that name is not what is run
        (tmp_path / "callboard.py").write_text("raise SystemExit(7)")
        code, shown = log_in(tmp_path, [told["command"], *told["args"]], told["env"], typed=KEY)
        assert code == 0, shown
        assert agent.call("authenticate", methodId=LOGIN) == {}
