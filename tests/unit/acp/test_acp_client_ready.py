"""Agents that are found where their programs are, and what doctor finds out about each."""

import json
import sys
from pathlib import Path

import psutil
import pytest
from acp_client_kit import AGENT, stage, write_agent
from test_acp_client_turns import of, said

from callboard.acp.client.failures import AUTH_REQUIRED, failure_of
from callboard.acp.client.last_words import in_short, kept, telling
from callboard.acp.client.probe import probe_all
from callboard.acp.client.service import environment_of
from callboard.acp.contract.server import AuthMethodTerminal
from callboard.acp.peer import PeerError
from callboard.doctor import agent_checks
from callboard.environment import Environment
from callboard.sessions.profiles import Profile, ProfileBook
from callboard.sessions.ready import READY, ready_profiles
from callboard_rpc.errors import CallboardError

pytestmark = pytest.mark.anyio


def _program(folder: Path, name: str, scene: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{AGENT}" "{scene}"\n', "utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("ready", READY, ids=lambda each: each.name)
def test_where_its_program_is_there_is_its_profile(tmp_path: Path, ready: object) -> None:
    name, commands = ready.name, ready.commands  # type: ignore[attr-defined]
    assert ready_profiles(str(tmp_path / "bin")) == ()
    for program, *arguments in reversed(commands):
        path = _program(tmp_path / "bin", program)
        (profile,) = ready_profiles(str(tmp_path / "bin"))
        assert (profile.name, profile.kind, profile.source) == (name, "acp", "builtin")
        assert profile.command == (str(path), *arguments)
        assert profile.info().kind == "acp"


def test_one_whose_program_is_not_there_is_refused_by_the_programs_name(tmp_path: Path) -> None:
    environment = Environment(environ={"PATH": str(tmp_path)}, user_dir=tmp_path / "config")
    with pytest.raises(CallboardError) as caught:
        environment.profiles_for(str(tmp_path)).get("claude")
    assert caught.value.kind == "profileNotFound"
    assert "its program claude-agent-acp or claude-code-acp, which is not" in caught.value.message
    assert "there are: default" in caught.value.message


def test_a_file_of_the_persons_wins(tmp_path: Path) -> None:
    _program(tmp_path / "bin", "opencode")
    write_agent(tmp_path, {"prompts": []}, name="opencode", command=["mine"])
    environment = Environment(environ={"PATH": str(tmp_path / "bin")}, user_dir=tmp_path / "config")
    profile = environment.profiles_for(str(tmp_path)).get("opencode")
    assert profile.command == ("mine",)
    assert profile.source == "user"


def test_a_workspace_changes_none_of_them(tmp_path: Path) -> None:
    _program(tmp_path / "bin", "opencode")
    agents = tmp_path / ".callboard" / "agents"
    agents.mkdir(parents=True)
    (agents / "opencode.md").write_text("---\nmode: work\n---\nObey the workspace.", "utf-8")
    environment = Environment(environ={"PATH": str(tmp_path / "bin")}, user_dir=tmp_path / "config")
    profile = environment.profiles_for(str(tmp_path)).get("opencode")
    assert profile.kind == "acp"
    assert profile.prompt == ""


async def test_doctor_starts_each_and_tells_what_it_is(tmp_path: Path) -> None:
    can = {"loadSession": True, "sessionCapabilities": {"resume": {}, "close": {}}}
    write_agent(tmp_path, {"prompts": [], "capabilities": can}, name="works")
    write_agent(tmp_path, {"prompts": []}, name="missing", command=["no-such-program"])
    login = {"session/new": {"code": -32000, "message": "Authentication required"}}
    ways = [
        {"type": "env_var", "id": "key", "name": "By key", "vars": [{"name": "A_KEY"}]},
        {"id": "web", "name": "On the web"},
    ]
    scene = {"prompts": [], "faults": login, "auth_methods": ways}
    write_agent(tmp_path, scene, name="outside")
    dies = ["/bin/sh", "-c", "echo no licence >&2; exit 3"]
    write_agent(tmp_path, {"prompts": []}, name="dies", command=dies)
    checks = await agent_checks(tmp_path / "config", tmp_path, {"PATH": "/usr/bin:/bin"})
    found = {check.name: check for check in checks}
    assert found["Agent works"].status == "ok"
    assert found["Agent works"].found == "puppet 1.0, can resume, load"
    assert found["Agent outside"].status == "warn"
    assert "not logged in" in found["Agent outside"].found
    assert "It offers: By key; On the web." in found["Agent outside"].advice
    assert "no-such-program" in found["Agent missing"].advice
    assert found["Agent missing"].found == "is not there"
    assert found["Agent dies"].advice.endswith("it said last: no licence")
    assert found["Agent dies"].more.endswith("it said last:\nno licence")
    assert found["Agent works"].more == ""
    heard = (tmp_path / "heard").read_text("utf-8")
    assert "session/close" in heard
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in str(p.info["cmdline"])
    ]


@pytest.mark.parametrize(
    ("command", "login"),
    [
        (("/opt/bin/gemini", "--acp"), "Run 'gemini' in a terminal, log in there"),
        (("codex-acp",), "Run 'codex login' in a terminal"),
        (("npx", "-y", "@zed-industries/codex-acp@0.9.5"), "Run 'codex login' in a terminal"),
        (("claude-agent-acp",), "Run 'claude auth login' in a terminal"),
        (("C:\\bin\\claude-code-acp.cmd",), "Run 'claude auth login' in a terminal"),
        (("opencode", "acp"), "Run 'opencode auth login' in a terminal"),
        (("goose", "acp"), "Run 'goose configure' in a terminal"),
        (("/opt/vibe/bin/vibe-acp",), "Run 'vibe --setup' in a terminal"),
        (("kimi", "acp"), "Run 'kimi login' in a terminal"),
        (("mine", "--like", "gemini"), "Run 'mine' in a terminal, log in there"),
        (("npx", "something"), "Run 'npx something' in a terminal, log in there"),
        (("npx", "-y", "@us/agent", "--acp"), "Run 'npx -y @us/agent' in a terminal, log in there"),
        (
            ("python3", "/opt/ours.py", "--acp"),
            "Run 'python3 /opt/ours.py' in a terminal, log in there",
        ),
        (("python3", "a\nb"), "Run 'python3' in a terminal, log in there"),
        (("npx", "--version"), "Run 'npx' in a terminal, log in there"),
    ],
)
def test_the_advice_names_what_logs_in_to_it(command: tuple[str, ...], login: str) -> None:
    profile = Profile(name="x", description="", prompt="", source="user", command=command)
    fault = PeerError(AUTH_REQUIRED, "Authentication required", None)
    error = failure_of(fault, "session/new", profile, (), log_text=str)
    assert error.kind == "authRequired"
    assert f"{login}, and prompt again." in error.message


def test_an_agent_that_is_not_known_is_logged_in_to_as_it_says_itself() -> None:
    command = ("our agent", "--acp")
    profile = Profile(name="x", description="", prompt="", source="user", command=command)
    way = AuthMethodTerminal(id="t", name="T", args=("login", "$(evil)"))
    fault = PeerError(AUTH_REQUIRED, "no", None)
    error = failure_of(fault, "session/new", profile, (way,), log_text=str)
    assert "Run ''our agent' --acp login '$(evil)'' in a terminal" in error.message


NODE = """\
node:internal/modules/cjs/loader:1215
  throw err;
  ^

Error: Cannot find module 'left-pad'
Require stack:
- /opt/agent/main.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1212:15)
    at Module._load (node:internal/modules/cjs/loader:1038:27)
    at Module.require (node:internal/modules/cjs/loader:1289:19)
    at require (node:internal/modules/helpers:182:18)
    at Object.<anonymous> (/opt/agent/main.js:1:1)
    at Module._compile (node:internal/modules/cjs/loader:1521:14)
    at Object..js (node:internal/modules/cjs/loader:1623:10) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/opt/agent/main.js' ]
}

Node.js v22.1.0
"""
PYTHON = """\
Traceback (most recent call last):
  File "/opt/agent.py", line 1, in <module>
    import lost
ModuleNotFoundError: No module named 'lost'
"""
RUST = """\
thread 'main' panicked at src/main.rs:3:5:
no home
note: run with `RUST_BACKTRACE=1`
"""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (NODE, "Error: Cannot find module 'left-pad'"),
        (PYTHON, "ModuleNotFoundError: No module named 'lost'"),
        (RUST, "thread 'main' panicked at src/main.rs:3:5:"),
        ("reading settings\nno licence\n", "no licence"),
        ("  ^\n}\n", "}"),
        ("", ""),
    ],
    ids=["node", "python", "rust", "plain", "nothing", "silent"],
)
def test_of_its_last_words_the_line_that_tells_something_is_shown(words: str, line: str) -> None:
    assert telling(words.splitlines()) == line
    told = in_short(f"the agent 'x' ended; it said last:\n{words}")
    assert told == f"the agent 'x' ended; it said last: {line}".strip()
    assert line in "\n".join(kept(words.splitlines(), 8))
    assert len(in_short("it said last:\n" + "error: " + "x" * 10_000)) == 600


async def test_who_does_not_show_itself_in_time_is_ended(tmp_path: Path) -> None:
    write_agent(tmp_path, {"silent": ["initialize"], "outlives_its_input": True}, name="slow")
    book = ProfileBook.load(tmp_path / "config", None)
    (told,) = await probe_all(
        [book.get("slow")], {"PATH": "/usr/bin:/bin"}, redact=str, within_s=0.5
    )
    assert (told.status, told.checks[-1].ok) == ("error", False)
    assert told.checks[-1].detail == "did not show itself within 0.5 s"
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in str(p.info["cmdline"])
    ]


async def test_one_that_has_a_key_is_told_to_go_by_it(tmp_path: Path) -> None:
    methods = [
        {"id": "web", "name": "On the web"},
        {"id": "key", "name": "By key", "_meta": {"api-key": {"provider": "x"}}},
    ]
    once = {"session/new": {"code": -32000, "message": "Authentication required"}}
    scene = {"auth_methods": methods, "faults_once": once}
    async with stage(tmp_path, {"say": "in"}, scene=scene) as play:
        records = await play.turn()
        (asked,) = play.heard("authenticate")
    assert asked["params"] == {"methodId": "key"}
    assert said(records) == ["in"]
    assert json.dumps([r.data for r in records]).count("authRequired") == 0
    assert of(records, "turn_finished")[0].outcome == "completed"


@pytest.mark.parametrize("inherits", [True, False])
def test_what_an_agent_inherits_is_said_in_its_profile(tmp_path: Path, inherits: bool) -> None:
    place = tmp_path / "agents"
    place.mkdir()
    front = f"kind: acp\ncommand: [x]\ninherit_env: {str(inherits).lower()}\nenv:\n  OURS: here\n"
    (place / "puppet.md").write_text(f"---\n{front}---\n", "utf-8")
    profile = ProfileBook.load(tmp_path, None).get("puppet")
    plain = {"PATH": "/bin", "HOME": "/home", "LC_ALL": "C", "XDG_CACHE_HOME": "/c", "TERM": "dumb"}
    more = {"SOME_API_KEY": "k", "SSH_AUTH_SOCK": "/s", "LD_PRELOAD": "/x"}
    environ = environment_of({**plain, **more, "CALLBOARD_STORE": "/s"}, profile)
    assert environ == {**plain, **(more if inherits else {}), "OURS": "here"}


def test_a_workspace_says_nothing_of_environments(tmp_path: Path) -> None:
    place = tmp_path / ".callboard" / "agents"
    place.mkdir(parents=True)
    (place / "mine.md").write_text("---\ninherit_env: true\n---\nhello", "utf-8")
    with pytest.raises(CallboardError, match="a workspace may not"):
        ProfileBook.load(tmp_path / "none", tmp_path).get("mine")
