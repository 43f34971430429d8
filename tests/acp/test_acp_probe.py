"""``agent/probe``: what the agent of a profile is like; what is started for it always ends."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_acp_agents import SPEAKS, agent, running, until, work  # noqa: F401 - a fixture

from harness.checked import CheckedServer
from harness.process import ANEW, PATIENCE_S, RpcError, scenario

KEY = "key-of-the-environment-4711"
LOGIN = {"session/new": {"code": -32000, "message": "Authentication required"}}
STACK = """
console: begun
node:internal/modules/cjs/loader:1215
  throw err;
  ^

Error: Cannot find module 'left-pad'
Require stack:
- /opt/agent/main.js
{frames}
  code: 'MODULE_NOT_FOUND',
}

Node.js v22.1.0
""".replace("{frames}", "\n".join(f"    at frame{n} (/opt/{n}.js:1:1)" for n in range(20)))
FULL: dict[str, Any] = {
    "capabilities": {
        "loadSession": True,
        "promptCapabilities": {"image": True},
        "sessionCapabilities": {"resume": {}, "delete": {}},
    },
    "auth_methods": [
        {"id": "web", "name": "On the web", "description": "In your browser"},
        {"type": "env_var", "id": "key", "name": "By key", "vars": [{"name": "A_KEY"}]},
    ],
    "opened": {
        "modes": {
            "currentModeId": "code",
            "availableModes": [{"id": "plan", "name": "Plan"}, {"id": "code", "name": "Code"}],
        },
        "configOptions": [
            {
                "type": "select",
                "id": "m",
                "name": "Model",
                "category": "model",
                "currentValue": "small",
                "options": [
                    {"value": "large", "name": "Large", "description": "The larger one"},
                    {"value": "small", "name": "Small"},
                ],
            }
        ],
    },
}


def serve(folder: Path, **more: Any) -> CheckedServer:
    return CheckedServer(folder, model=scenario(folder, SPEAKS), **more)


def dies(folder: Path, name: str, words: str) -> None:
    """An agent that says something and ends at once."""
    agents = folder / "home" / "config" / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    code = f"import sys; sys.stderr.write({words!r}); sys.exit(3)"
    command = json.dumps([sys.executable, "-c", code])
    (agents / f"{name}.md").write_text(f"---\nkind: acp\ncommand: {command}\n---\n")


def statuses(server: CheckedServer) -> dict[str, str | None]:
    return {each["name"]: each.get("status") for each in server.call("profile/list")["data"]}


def heard(folder: Path, name: str) -> Any:
    path = folder / f"{name}.heard"
    return until(lambda: path.exists() and "initialize" in path.read_text())


def test_an_agent_tells_what_it_is_and_is_gone(tmp_path: Path) -> None:
    agent(tmp_path, "puppet", **FULL)
    with serve(tmp_path) as server:
        assert statuses(server) == {"default": None, "puppet": "unknown"}
        told = server.call("agent/probe", profile="puppet")
        assert (told["profile"], told["ok"], told["status"]) == ("puppet", True, "ready")
        assert [(c["name"], c["ok"]) for c in told["checks"]] == [
            ("program", True), ("handshake", True), ("session", True),
        ]  # fmt: skip
        assert told["agentInfo"] == {"name": "puppet", "version": "1.0"}
        able = [name for name, can in told["capabilities"].items() if can]
        assert able == ["resume", "load", "delete", "images"]
        assert told["authMethods"] == [
            {"id": "web", "name": "On the web", "description": "In your browser"},
            {"id": "key", "name": "By key"},
        ]
        assert told["modes"] == [
            {"id": "plan", "name": "Plan", "current": False},
            {"id": "code", "name": "Code", "current": True},
        ]
        assert told["models"] == [
            {"id": "large", "name": "Large", "description": "The larger one", "current": False},
            {"id": "small", "name": "Small", "current": True},
        ]
        assert running(tmp_path) == []
        assert "session/delete" in (tmp_path / "puppet.heard").read_text()
        assert statuses(server) == {"default": None, "puppet": "ready"}
        assert server.call("session/list")["data"] == []
        agent(tmp_path, "puppet", prompts=[["x", []]])
        assert statuses(server)["puppet"] == "ready", "the same command"
        dies(tmp_path, "puppet", "no")
        assert statuses(server)["puppet"] == "unknown", "another one"


def test_each_that_cannot_be_used_says_why_and_what_to_do(tmp_path: Path) -> None:
    agent(tmp_path, "outside", faults=LOGIN, auth_methods=FULL["auth_methods"])
    dies(tmp_path, "dies", STACK + f"with {KEY}\n")
    agents = tmp_path / "home" / "config" / "agents"
    (agents / "missing.md").write_text("---\nkind: acp\ncommand: [no-such-program]\n---\n")
    agent(tmp_path, "ancient", version=0)
    with serve(tmp_path, environ={"SOME_TOKEN": KEY}) as server:
        found = {name: server.call("agent/probe", profile=name) for name in statuses(server)}
        assert {name: each["status"] for name, each in found.items()} == statuses(server) | {
            "default": "ready"
        } == {
            "default": "ready",
            "ancient": "error",
            "dies": "error",
            "missing": "missing",
            "outside": "needsAuth",
        }  # fmt: skip
        last = {name: each["checks"][-1] for name, each in found.items()}
        assert last["missing"]["name"] == "program"
        assert "no-such-program" in last["missing"]["detail"]
        assert last["outside"]["name"] == "session"
        assert "It offers: On the web (In your browser); By key." in last["outside"]["detail"]
        assert found["outside"]["authMethods"][1] == {"id": "key", "name": "By key"}
        assert last["dies"]["name"] == "handshake"
        assert "Error: Cannot find module 'left-pad'" in last["dies"]["detail"]
        assert "speaks version 0" in last["ancient"]["detail"]
        for name, each in found.items():
            assert each["ok"] is (name == "default")
            assert KEY not in json.dumps(each)
        assert running(tmp_path) == []
        with pytest.raises(RpcError) as unknown:
            server.call("agent/probe", profile="nobody")
        assert unknown.value.kind == "profileNotFound"
        with pytest.raises(RpcError) as relative:
            server.call("agent/probe", profile="default", cwd="relative")
        assert relative.value.kind == "invalidParams"


def test_of_an_agent_of_ours_it_is_said_whether_its_model_can_be_used(tmp_path: Path) -> None:
    agents = tmp_path / "home" / "config" / "agents"
    agents.mkdir(parents=True)
    (agents / "hosted.md").write_text("---\nmodel: openai/gpt-5\n---\nYou are.")
    (agents / "lost.md").write_text("---\nmodel: nobody/any\n---\nYou are.")
    with serve(tmp_path) as server:
        default = server.call("agent/probe", profile="default")
        assert default["ok"] and default["models"][0]["id"].startswith("scripted/")
        assert [c["name"] for c in default["checks"]] == ["model"]
        hosted = server.call("agent/probe", profile="hosted")
        assert hosted["status"] == "needsAuth"
        assert "callboard login openai" in hosted["checks"][0]["detail"]
        assert server.call("agent/probe", profile="lost")["status"] == "error"
        assert set(statuses(server).values()) == {None}


def test_a_session_tells_how_an_agent_stands_as_a_probe_does(
    tmp_path: Path,
    work: Path,  # noqa: F811
) -> None:
    agent(tmp_path, "works", {"say": "Done."})
    agent(tmp_path, "outside", faults=LOGIN)
    agent(tmp_path, "later", {"fail": LOGIN["session/new"]})
    with serve(tmp_path) as server:
        for name in ("works", "outside", "later"):
            session = server.create(work, profile=name)
            server.prompt(session, "go")
            server.wait(session)
        known = statuses(server)
        assert (known["works"], known["outside"], known["later"]) == (
            "ready", "needsAuth", "needsAuth",
        )  # fmt: skip


def test_what_an_agent_says_of_itself_is_cut(tmp_path: Path) -> None:
    long = "x" * 5_000
    methods = [{"id": f"{n}{long}", "name": long, "description": long} for n in range(300)]
    modes = [{"id": f"{n}", "name": long} for n in range(300)]
    opened = {"modes": {"currentModeId": "0", "availableModes": modes}}
    agent(tmp_path, "vain", auth_methods=methods, opened=opened)
    dies(tmp_path, "dies", "error: " + "y" * 200_000)
    with serve(tmp_path) as server:
        told = server.call("agent/probe", profile="vain")
        assert told["ok"] and len(told["authMethods"]) == len(told["modes"]) == 100
        assert max(len(each["description"]) for each in told["authMethods"]) == 1_000
        assert max(len(each["name"]) for each in told["modes"]) == 200
        died = server.call("agent/probe", profile="dies")
        assert len(died["checks"][-1]["detail"]) <= 4_000


def test_doctor_says_in_a_line_what_a_stack_of_calls_comes_to_and_the_rest_when_asked(
    tmp_path: Path,
) -> None:
    dies(tmp_path, "dies", STACK)
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "CALLBOARD_CONFIG_DIR": str(tmp_path / "home" / "config"),
        "CALLBOARD_STORE": str(tmp_path / "store.db"),
    }

    def doctor(*options: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-P", "-m", "callboard", "doctor", *options],
            env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert ran.stderr == ""
        return ran.stdout

    lines = doctor().splitlines()
    at = next(i for i, line in enumerate(lines) if "Agent dies" in line)
    assert lines[at].endswith("does not work")
    assert lines[at + 1].endswith("it said last: Error: Cannot find module 'left-pad'")
    assert "frame" not in "".join(lines) and "Require stack" not in "".join(lines)
    whole = doctor("--verbose")
    assert "Require stack" in whole and "at frame0" in whole
    told = [json.loads(line) for line in doctor("--json", "--verbose").splitlines()]
    (about,) = [each for each in told if each["name"] == "Agent dies"]
    assert "Require stack" in about["more"] and "\n" not in about["advice"]


def test_a_probe_that_is_cancelled_ends_its_agent(tmp_path: Path) -> None:
    agent(tmp_path, "silent", silent=["initialize"], outlives_its_input=True)
    with serve(tmp_path) as server:
        asked = server.request("agent/probe", profile="silent")
        heard(tmp_path, "silent")
        assert len(running(tmp_path)) == 1
        server.notify("$/cancelRequest", id=asked)
        with pytest.raises(RpcError) as cancelled:
            server.result(asked)
        assert cancelled.value.error["code"] == -32800
        until(lambda: running(tmp_path) == [])
        assert statuses(server)["silent"] == "unknown"


def test_a_few_are_tried_at_once_and_the_others_wait(tmp_path: Path) -> None:
    for number in range(3):
        agent(tmp_path, f"silent{number}", silent=["initialize"])
    agent(tmp_path, "works")
    with serve(tmp_path) as server:
        first, *_ = [server.request("agent/probe", profile=f"silent{n}") for n in range(3)]
        waiting = server.request("agent/probe", profile="works")
        for number in range(3):
            heard(tmp_path, f"silent{number}")
        assert not (tmp_path / "works.heard").exists()
        server.notify("$/cancelRequest", id=first)
        assert server.result(waiting)["status"] == "ready"
        assert len(running(tmp_path)) == 2
    until(lambda: running(tmp_path) == [])


def test_what_a_server_that_was_killed_has_probed_is_ended_by_the_next(tmp_path: Path) -> None:
    agent(tmp_path, "silent", silent=["initialize"], outlives_its_input=True)
    folders = tmp_path / "folders"
    folders.mkdir()
    environ = {"TMPDIR": str(folders)}
    with serve(tmp_path, environ=environ, program=ANEW) as server:
        server.request("agent/probe", profile="silent")
        heard(tmp_path, "silent")
        server.kill()
        assert len(running(tmp_path)) == 1
        (folder,) = folders.iterdir()
        (folder / "left").touch()
    with serve(tmp_path, environ=environ, program=ANEW):
        until(lambda: running(tmp_path) == [])
        until(lambda: list(folders.iterdir()) == [])


@pytest.mark.parametrize(
    "does",
    [
        "os.rmdir(place); open(place, 'w').close()",
        "[(os.mkdir('d'), os.chdir('d')) for _ in range(1500)]",
    ],
    ids=["another file in its place", "folders in folders"],
)
def test_a_probe_is_told_whatever_its_agent_does_to_its_folder(tmp_path: Path, does: str) -> None:
    code = f"""
import json, os, sys
sys.stdin.readline()
place = os.getcwd()
{does}
error = {{"code": -32603, "message": "no"}}
print(json.dumps({{"jsonrpc": "2.0", "id": 1, "error": error}}), flush=True)
sys.stdin.readline()
"""
    agents = tmp_path / "home" / "config" / "agents"
    agents.mkdir(parents=True)
    command = json.dumps([sys.executable, "-c", code])
    (agents / "moves.md").write_text(f"---\nkind: acp\ncommand: {command}\n---\n")
    folders = tmp_path / "folders"
    folders.mkdir()
    try:
        with serve(tmp_path, environ={"TMPDIR": str(folders)}, program=ANEW) as server:
            assert server.call("agent/probe", profile="moves")["status"] == "error"
    finally:
        subprocess.run(["rm", "-rf", str(folders)], check=True)
