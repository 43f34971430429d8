"""``callboard login`` and ``logout`` as commands, and what servers that run make of them."""

import http.server
import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_harness import Cli, Terminal

from harness.process import RpcError, ServerProcess, scenario

KEY = "login-key-0123456789abcdef"
OTHER = "other-key-0123456789abcdef"


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    harness = Cli(tmp_path)
    harness.environment["CALLBOARD_CONFIG_DIR"] = str(tmp_path / "config")
    harness.environment.pop("CALLBOARD_MODEL")
    yield harness
    harness.close()


def test_a_key_from_standard_input_is_stored_and_told_by_doctor_but_never_shown(
    cli: Cli, tmp_path: Path
) -> None:
    listed = cli("login")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.split("\n")[:2] == ["openai     none", "anthropic  none"]
    unnamed = cli("login", stdin=f"{KEY}\n")
    assert "No key was read" in unnamed.out and "callboard login openai" in unnamed.out
    assert KEY not in unnamed.out + unnamed.err and not (tmp_path / "config").exists()
    stored = cli("login", "anthropic", stdin=f" {KEY}\n")
    assert stored.code == 0, stored.err
    path = tmp_path / "config" / "keys.toml"
    assert path.read_text() == f'anthropic = "{KEY}"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    listed = cli("login")
    assert "anthropic  stored" in listed.out
    doctor = cli("doctor", "--json")
    found = {each["name"]: each["found"] for each in doctor.lines}
    assert found["Keys"] == f"anthropic ({path})"
    assert found["Model"] == f"anthropic/claude-sonnet-5: the key of anthropic was found in {path}"
    cli.environment["ANTHROPIC_API_KEY"] = OTHER
    listed_last = cli("login")
    assert "in the environment (ANTHROPIC_API_KEY), which goes before" in listed_last.out
    said = cli("logout", "anthropic")
    assert "is removed" in said.out and "ANTHROPIC_API_KEY" in said.out
    for result in (stored, listed, doctor, listed_last, said):
        assert KEY not in result.out + result.err
        assert OTHER not in result.out + result.err


def test_a_person_at_a_terminal_types_it_unseen(cli: Cli, tmp_path: Path) -> None:
    terminal = Terminal(cli, "login")
    terminal.until("Provider [openai]: ")
    terminal.type("\n")
    terminal.until("Key of openai (it is not shown): ")
    terminal.type(f"{KEY}\n")
    assert terminal.finish() == 0
    assert "The key of openai is stored" in terminal.shown
    assert KEY not in terminal.shown
    assert (tmp_path / "config" / "keys.toml").read_text() == f'openai = "{KEY}"\n'


def test_who_types_nothing_or_leaves_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    terminal = Terminal(cli, "login", "openai")
    terminal.until("not shown): ")
    terminal.type("\n")
    assert terminal.finish() == 2
    terminal = Terminal(cli, "login", "openai")
    terminal.until("not shown): ")
    os.kill(terminal.process.pid, 2)
    assert terminal.finish() == 130
    assert "Traceback" not in terminal.shown
    assert cli("login", "openai").code == 2
    assert not (tmp_path / "config").exists()


@pytest.mark.parametrize("arguments", [("openai", KEY), (KEY,)])
def test_a_key_on_the_command_line_is_refused_and_not_repeated(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    refused = cli("login", *arguments, stdin=f"{KEY}\n")
    assert refused.code == 2
    assert KEY not in refused.out + refused.err
    assert "not taken from the command line" in refused.err
    assert not (tmp_path / "config").exists()


def test_what_is_no_key_or_no_place_for_one_is_refused_with_the_way_out(
    cli: Cli, tmp_path: Path
) -> None:
    refused = cli("login", "openai", stdin=f"{KEY}\n{KEY}\n")
    assert refused.code == 2 and "several lines" in refused.err and KEY not in refused.err
    folder = tmp_path / "config"
    folder.mkdir()
    folder.chmod(0o777)
    assert f"chmod go-w {folder}" in cli("login", "openai", stdin=KEY).err
    folder.chmod(0o700)
    assert cli("login", "openai", stdin=KEY).code == 0
    (folder / "keys.toml").chmod(0o644)
    for command in ("login", "logout"):
        refused = cli(command, "openai", stdin=OTHER)
        assert refused.code == 1 and f"chmod 600 {folder}/keys.toml" in refused.err
    assert (folder / "keys.toml").read_text() == f'openai = "{KEY}"\n'


def test_of_several_keys_logout_wants_to_know_which(cli: Cli) -> None:
    assert cli("logout").out.startswith("No key is stored")
    for name in ("openai", "anthropic"):
        assert cli("login", name, stdin=KEY).code == 0
    refused = cli("logout")
    assert refused.code == 2 and "openai, anthropic" in refused.err
    assert cli("logout", "openai").code == 0
    assert "The key of anthropic is removed" in cli("logout").out
    unknown = cli("logout", KEY)
    assert unknown.code == 2 and "there are openai, anthropic" in unknown.err
    assert KEY not in unknown.err


class _Models(http.server.BaseHTTPRequestHandler):
    """A chat model that says one word, and keeps what it was authorised with."""

    keys: list[str | None]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        type(self).keys.append(self.headers["authorization"])
        chunk = {"choices": [{"index": 0, "delta": {"content": "heard"}, "finish_reason": "stop"}]}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def test_a_server_that_runs_uses_a_key_that_is_stored_later_and_lets_go_of_one_that_is_removed(
    cli: Cli, tmp_path: Path
) -> None:
    class Models(_Models):
        keys: list[str | None] = []  # noqa: RUF012 - of this test alone

    models = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=models.serve_forever, daemon=True).start()
    config = tmp_path / "config"
    config.mkdir(0o700)
    (config / "config.toml").write_text(
        f'model = "mine/m"\n[providers.mine]\nbase_url = "http://127.0.0.1:{models.server_port}/v1"\n'
        'key_env = "MINE_KEY"\n'
    )
    (tmp_path / "work").mkdir()
    with ServerProcess(tmp_path, environ={"CALLBOARD_CONFIG_DIR": str(config)}) as server:
        session = server.create(tmp_path / "work")

        def turn() -> dict[str, str]:
            server.prompt(session, f"my key is {KEY}")
            server.wait(session)
            return server.events(session)[-1]["data"]

        assert turn()["outcome"] == "failed"
        (problem,) = [m for m in server.call("model/list")["data"] if m["provider"] == "mine"]
        assert "callboard login mine" in problem["reason"]
        assert cli("login", "mine", stdin=KEY).code == 0
        assert turn()["outcome"] == "completed"
        (ready,) = [m for m in server.call("model/list")["data"] if m["provider"] == "mine"]
        assert ready["available"]
        config_shown = json.dumps(server.call("config/get"))
        assert cli("login", "mine", stdin=OTHER).code == 0
        assert turn()["outcome"] == "completed"
        assert cli("logout", "mine").code == 0
        assert turn()["outcome"] == "failed"
        said = json.dumps(server.events(session)[-6:])
        server.close()
        shown = json.dumps(server.seen[-40:]) + server.stderr() + config_shown
    models.shutdown()
    models.server_close()
    assert Models.keys == [f"Bearer {KEY}", f"Bearer {OTHER}"]
    assert OTHER not in shown + said
    assert KEY not in said, "the prompt was made when the key was known"


def test_where_the_workspace_is_the_home_no_agent_gets_the_stored_key(
    cli: Cli, tmp_path: Path
) -> None:
    assert cli("login", "openai", stdin=KEY).code == 0
    script = (
        "rules:\n  - when: {last_user: look, step: 0}\n    answer:\n"
        "      - call: {tool: read_file, arguments: {path: config/keys.toml}}\ndefault: [{say: done}]\n"
    )
    config = {"CALLBOARD_CONFIG_DIR": str(tmp_path / "config")}
    with ServerProcess(tmp_path, model=scenario(tmp_path, script), environ=config) as server:
        session = server.create(tmp_path)
        server.prompt(session, "look")
        server.wait(session)
        (result,) = [e["data"] for e in server.events(session) if e["type"] == "tool_result"]
        assert result["status"] == "error" and "Callboard's own" in result["text"]
        with pytest.raises(RpcError) as denied:
            server.prompt(session, "look", context=[{"uri": "config/keys.toml"}])
        assert denied.value.kind == "pathDenied"
        assert KEY not in json.dumps(server.seen)


def test_a_pipe_in_place_of_the_key_file_keeps_nobody_waiting(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir(exist_ok=True)
    os.mkfifo(folder / "keys.toml")
    for words, stdin in ((("login", "openai"), KEY), (("logout", "openai"), "")):
        told = cli(*words, stdin=stdin)
        assert told.code == 1 and "is not a file" in told.err
    environ = {"CALLBOARD_CONFIG_DIR": str(folder)}
    with ServerProcess(tmp_path, environ=environ) as server:
        (openai,) = [m for m in server.call("model/list")["data"] if m["provider"] == "openai"]
        assert "is not a file" in openai["reason"]


def test_what_a_person_wrote_into_the_file_is_no_fault_of_ours(cli: Cli, tmp_path: Path) -> None:
    """A line of a longer text may look like a value without end."""
    folder = tmp_path / "config"
    folder.mkdir(exist_ok=True)
    path = folder / "keys.toml"
    path.write_text(f'other = """\n{OTHER}\nopenai = {"[" * 20_000}\n"""\n')
    path.chmod(0o600)
    told = cli("login", "openai", stdin=KEY)
    assert (told.code, told.err) == (0, "")
    assert f'openai = "{KEY}"' in path.read_text()
