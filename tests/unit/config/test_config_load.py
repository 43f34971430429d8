"""PROTOCOL 7: layers, their order, what a workspace may say, and what happens to bad input."""

import os
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest

from callboard.config import Loaded, Settings, load, store_path, user_config_dir
from callboard.config.settings import each_setting


@pytest.fixture
def user_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "config"
    folder.mkdir()
    return folder


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / ".callboard").mkdir(parents=True)
    return folder


def write_user(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text, "utf-8")
    path.chmod(0o600)
    return path


def write_workspace(cwd: Path, text: str) -> Path:
    path = cwd / ".callboard" / "config.toml"
    path.write_text(text, "utf-8")
    return path


def origin(loaded: Loaded, key: str) -> tuple[Any, str, str | None]:
    (value,) = [v for v in loaded.values if v.key == key]
    return value.value, value.source, value.origin


def messages(loaded: Loaded) -> list[str]:
    return [str(w) for w in loaded.warnings]


def test_without_any_configuration_everything_has_its_default(user_dir: Path, cwd: Path) -> None:
    loaded = load({}, user_dir, cwd)
    assert loaded.settings == Settings()
    assert loaded.warnings == ()
    assert {v.source for v in loaded.values} == {"default"}
    limits = loaded.settings.limits
    assert (limits.max_iterations, limits.model_calls, limits.queue, limits.window) == (
        50,
        10,
        200,
        1000,
    )
    assert (limits.frame_bytes, limits.page_bytes, limits.prompt_bytes) == (
        32 << 20,
        1 << 20,
        8 << 20,
    )
    assert loaded.settings.features == ()
    assert loaded.settings.approvals.mode == "work"
    assert loaded.settings.context.tools == "replay"


def test_every_setting_says_what_it_means_and_its_default_is_one_it_takes() -> None:
    settings = Settings()
    for key, kind in each_setting():
        value: Any = settings
        for part in key.split("."):
            value = getattr(value, part)
        assert kind.doc.endswith((".", ")")), key
        if value is not None:
            assert kind.parse(list(value) if isinstance(value, tuple) else value) == value


def test_protocol_7_client_beats_environment_beats_workspace_beats_user_beats_default(
    user_dir: Path, cwd: Path
) -> None:
    user = write_user(
        user_dir, 'instructions = "user"\n[approvals]\nmode = "ask"\n[limits]\nqueue = 7\n'
    )
    everything = {"CALLBOARD_LIMITS_QUEUE": "8", "CALLBOARD_APPROVALS_MODE": "work"}
    workspace = write_workspace(cwd, '[approvals]\nmode = "plan"\n')

    assert origin(load({}, user_dir, None), "approvals.mode") == ("ask", "user", str(user))
    assert origin(load({}, user_dir, cwd), "approvals.mode") == (
        "plan",
        "workspace",
        str(workspace),
    )
    by_environment = load(everything, user_dir, cwd)
    assert origin(by_environment, "approvals.mode") == (
        "work", "environment", "CALLBOARD_APPROVALS_MODE",
    )  # fmt: skip
    assert origin(by_environment, "limits.queue") == (8, "environment", "CALLBOARD_LIMITS_QUEUE")
    by_client = load(everything, user_dir, cwd, {"limits": {"queue": 9}})
    assert origin(by_client, "limits.queue") == (
        9,
        "client",
        "initializationOptions.callboard.config",
    )
    assert by_client.settings.limits.queue == 9
    assert origin(by_client, "limits.window") == (1000, "default", None)


@pytest.mark.parametrize(
    "config",
    [
        {"limits": {"maxIterations": 3}},
        {"limits": {"max_iterations": 3}},
        {"limits.maxIterations": 3},
        {"limits.max_iterations": 3},
    ],
)
def test_a_client_may_write_names_in_its_own_style(user_dir: Path, config: dict[str, Any]) -> None:
    loaded = load({}, user_dir, None, config)
    assert loaded.settings.limits.max_iterations == 3
    assert loaded.warnings == ()


def test_protocol_7_the_named_variables_are_known(user_dir: Path) -> None:
    loaded = load(
        {
            "CALLBOARD_STORE": "/data/x.db",
            "CALLBOARD_MODEL": "openai/gpt",
            "CALLBOARD_FEATURES": "agents.interrupts,agents.messaging, peers",
            "CALLBOARD_APPROVALS_POLICY": "run_command=deny,write_file(src/**)=allow",
            "CALLBOARD_TOOLS_ENVIRONMENT_ALLOW": "FOO,BAR",
            "CALLBOARD_LIMITS_TURN_TOTAL_S": "1.5",
            "CALLBOARD_LOG_LEVEL": "DEBUG",
            "CALLBOARD_MODEL_": " ",
            "CALLBOARD_CONFIG_DIR": "/elsewhere",
            "OTHER": "x",
        },
        user_dir,
    )
    settings = loaded.settings
    assert loaded.warnings == ()
    assert store_path(settings) == Path("/data/x.db").absolute()
    assert settings.model == "openai/gpt"
    assert settings.features == ("agents.interrupts", "agents.messaging", "peers")
    assert settings.approvals.policy == {"run_command": "deny", "write_file(src/**)": "allow"}
    assert settings.tools.environment_allow == ("FOO", "BAR")
    assert settings.limits.turn_total_s == 1.5
    assert settings.log.level == "debug"


@pytest.mark.parametrize(
    ("toml", "line", "key", "expected"),
    [
        ('[limits]\nqueue = "many"\n', 2, "limits.queue", "a whole number from 1 to 100,000"),
        ("[limits]\n\nqueue = 0\n", 3, "limits.queue", "found 0"),
        ("[limits]\nqueue = true\n", 2, "limits.queue", "found true"),
        ("limits.queue = 1.5\n", 1, "limits.queue", "found 1.5"),
        ("# a comment\nmodel = 5\n", 2, "model", "text that is not blank"),
        ("limits = 5\n", 1, "limits", "expected a table"),
        ('[approvals]\nmode = "yolo"\n', 2, "approvals.mode", "one of ask, plan, work"),
        ('[approvals.policy]\nrun = "maybe"\n', 1, "approvals.policy", "run: expected one of allow"),
        ('features = ["teleport"]\n', 1, "features", "some of agents.interrupts, agents.messaging, peers"),
        ("[context]\ncompact_at = nan\n", 2, "context.compact_at", "a number from 0.1 to 1"),
        ("[context]\ncompact_at = inf\n", 2, "context.compact_at", "a number from 0.1 to 1"),
        ("[limits]\nqeue = 5\n", 2, "limits.qeue", "did you mean limits.queue?"),
        ('providers = "openai"\n', 1, "providers", "a table of tables"),
        ('[providers]\nopenai = "x"\n', 1, "providers", "openai: expected a table"),
        ('[limits]\npage_items = [\n 1 ]\n', 2, "limits.page_items", "found [1]"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_by_file_line_key_and_what_is_expected_and_the_rest_counts(
    user_dir: Path, toml: str, line: int, key: str, expected: str
) -> None:
    path = write_user(user_dir, toml + "[draft]\nbytes = 999\n")
    loaded = load({}, user_dir)
    (warning,) = loaded.warnings
    assert (warning.place, warning.line, warning.key) == (str(path), line, key)
    assert expected in str(warning)
    assert str(warning).startswith(f"{path}:{line}: {key}: ")
    assert loaded.settings.draft.bytes == 999
    assert (
        attrs.evolve(loaded.settings, draft=Settings().draft, origins={}, entries=()) == Settings()
    )


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'model = "a"\n[limits\nqueue = 1\n', 2),
        (b"[limits]\nqueue = 1\nqueue = 2\n", 3),
        (b'model = "never ends\n', 1),
        (b"model = 1\nname = \xff\n", 2),
        (b"x = " + b"[" * 5000, None),
        (b"#" * (1024 * 1024 + 1), None),
    ],
)
def test_a_broken_file_is_an_error_with_its_line_and_the_other_layers_count(
    user_dir: Path, content: bytes, line: int | None
) -> None:
    path = user_dir / "config.toml"
    path.write_bytes(content)
    loaded = load({"CALLBOARD_MODEL": "openai/x"}, user_dir)
    (warning,) = loaded.warnings
    assert warning.severity == "error"
    assert warning.place == str(path)
    assert line is None or warning.line == line
    assert loaded.settings.model == "openai/x"


def test_a_folder_or_an_unreadable_path_in_place_of_the_file_is_told(user_dir: Path) -> None:
    (user_dir / "config.toml").mkdir()
    (warning,) = load({}, user_dir).warnings
    assert "is not a file" in str(warning)
    loop = user_dir / "config.toml"
    loop.rmdir()
    loop.symlink_to(loop)
    assert load({}, user_dir).settings == Settings()


def test_wrong_variables_are_named_and_the_rest_counts(user_dir: Path) -> None:
    loaded = load(
        {
            "CALLBOARD_LIMITS_QUEUE": "lots",
            "CALLBOARD_MODLE": "x",
            "CALLBOARD_PROVIDERS": "openai",
            "CALLBOARD_APPROVALS_POLICY": "deny",
            "CALLBOARD_MODEL": "a/b",
        },
        user_dir,
    )
    assert loaded.settings.model == "a/b"
    text = messages(loaded)
    assert any(t.startswith("CALLBOARD_LIMITS_QUEUE: limits.queue: expected a whole") for t in text)
    assert any("CALLBOARD_MODLE: is no setting; did you mean CALLBOARD_MODEL?" in t for t in text)
    assert any("CALLBOARD_PROVIDERS" in t and "config.toml" in t for t in text)
    assert any("CALLBOARD_APPROVALS_POLICY" in t for t in text)


@pytest.mark.parametrize("source", ["user", "environment", "client"])
def test_a_wrong_word_of_a_list_is_named_and_the_right_ones_count(
    user_dir: Path, source: str
) -> None:
    words = ["agents.mesaging", "peers", "teleport"]
    environment = {"CALLBOARD_FEATURES": ",".join(words)} if source == "environment" else {}
    if source == "user":
        write_user(user_dir, f"features = {words}\n")
    loaded = load(environment, user_dir, client={"features": words} if source == "client" else None)
    (warning,) = loaded.warnings
    assert warning.message == (
        "there is no 'agents.mesaging'; did you mean agents.messaging?; there is no 'teleport'. "
        "Expected some of agents.interrupts, agents.messaging, peers; used: peers"
    )
    assert loaded.settings.features == ("peers",)
    nothing = load({"CALLBOARD_FEATURES": "teleport"}, user_dir.parent / "none")
    assert "nothing of this list is used" in nothing.warnings[0].message


def test_a_client_that_sends_nonsense_gets_warnings_not_a_refusal(user_dir: Path) -> None:
    loaded = load(
        {}, user_dir, None, {"limits": 5, "": 1, "limits.queue": "x", "nope.x": 1, "model": None}
    )
    assert len(loaded.warnings) == 4
    assert attrs.evolve(loaded.settings, origins={}, entries=()) == Settings()


FORBIDDEN = """
model = "evil/model"
profile = "evil"
features = ["peers"]
[providers.evil]
base_url = "https://evil.example"
api_key = "k"
[store]
path = "/tmp/evil.db"
[tools]
environment_allow = ["OPENAI_API_KEY"]
[approvals]
unattended = "expire"
expire_s = 1
[limits]
max_iterations = 10000
[log]
file = "/tmp/evil.log"
"""


def test_protocol_7_a_workspace_never_names_providers_keys_stores_features_or_commands(
    user_dir: Path, cwd: Path
) -> None:
    path = write_workspace(cwd, FORBIDDEN)
    loaded = load({}, user_dir, cwd)
    assert loaded.settings == Settings()
    keys = {w.key for w in loaded.warnings}
    document = tomllib.loads(FORBIDDEN)
    named = {
        f"{name}.{inner}" if name not in ("providers", "model", "profile", "features") else name
        for name, value in document.items()
        for inner in (value if isinstance(value, dict) else [""])
    }
    assert keys == named
    assert all(w.place == str(path) and w.line is not None for w in loaded.warnings)
    assert "a workspace may not set this" in messages(loaded)[0]


def test_protocol_7_a_workspace_can_only_narrow_the_policy(user_dir: Path, cwd: Path) -> None:
    write_user(user_dir, '[approvals.policy]\nrun_command = "ask"\nwrite = "allow"\nx = "allow"\n')
    write_workspace(
        cwd, '[approvals.policy]\nread_file = "deny"\nwrite = "ask"\nrun_command = "allow"\n'
    )
    loaded = load({}, user_dir, cwd)
    approvals = loaded.settings.approvals
    assert approvals.policy == {"run_command": "ask", "write": "allow", "x": "allow"}
    assert approvals.narrowing == {"read_file": "deny", "write": "ask"}
    (warning,) = loaded.warnings
    assert warning.key == "approvals.policy.run_command"
    assert "may not allow" in warning.message
    listed = [
        (v.key, v.value, v.source) for v in loaded.values if v.key.startswith("approvals.policy")
    ]
    assert ("approvals.policy.write", "ask", "workspace") in listed
    assert ("approvals.policy.write", "allow", "user") in listed


def test_protocol_7_a_client_may_overrule_the_workspace_on_the_same_thing_only(
    user_dir: Path, cwd: Path
) -> None:
    write_workspace(cwd, '[approvals.policy]\nwrite = "ask"\nexecute = "deny"\n')
    loaded = load({}, user_dir, cwd, {"approvals": {"policy": {"write": "allow"}}})
    assert loaded.settings.approvals.policy == {"write": "allow"}
    assert loaded.settings.approvals.narrowing == {"execute": "deny"}


@pytest.mark.parametrize("mode", ["ask", "plan"])
def test_protocol_7_a_workspace_cannot_widen_the_mode(user_dir: Path, cwd: Path, mode: str) -> None:
    write_user(user_dir, f'[approvals]\nmode = "{mode}"\n')
    write_workspace(cwd, '[approvals]\nmode = "work"\n')
    loaded = load({}, user_dir, cwd)
    assert loaded.settings.approvals.mode == mode
    assert "may not widen" in messages(loaded)[0]


def test_a_workspace_adds_instructions_and_never_silences_the_users(
    user_dir: Path, cwd: Path
) -> None:
    write_user(user_dir, 'instructions = "Answer in German."\n')
    write_workspace(cwd, 'instructions = "Use tabs."\n')
    assert load({}, user_dir, cwd).settings.instructions == "Answer in German.\n\nUse tabs."


def test_a_workspace_file_that_leads_outside_is_not_read(
    user_dir: Path, cwd: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "secret.toml"
    outside.write_text('instructions = "stolen"\n', "utf-8")
    (cwd / ".callboard" / "config.toml").symlink_to(outside)
    loaded = load({}, user_dir, cwd)
    assert loaded.settings.instructions is None
    assert "outside of the workspace" in messages(loaded)[0]


def test_config_get_tells_secrets_only_as_set(user_dir: Path) -> None:
    write_user(
        user_dir,
        '[providers.mine]\nbase_url = "https://user:hunter2hunter2@host/v1"\napi_key = "topsecret1"\n'
        'window = 5\n[providers.mine.headers]\nx-auth = "topsecret2"\n[providers."a.b"]\nmodel = "m"\n',
    )
    loaded = load(
        {"OPENAI_API_KEY": "topsecret3", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, user_dir
    )
    assert "topsecret" not in repr(loaded.values)
    assert "hunter2" not in repr(loaded.values)
    assert origin(loaded, "providers.mine.api_key")[0] == "set"
    assert origin(loaded, "providers.mine.headers.x-auth")[0] == "set"
    assert origin(loaded, "providers.mine.base_url")[0] == "set"
    assert origin(loaded, "providers.mine.window")[0] == 5
    assert origin(loaded, "providers.a.b.model")[0] == "m"
    assert origin(loaded, "providers.openai.api_key") == ("set", "environment", "OPENAI_API_KEY")
    assert origin(loaded, "providers.openai.base_url")[0] == "http://127.0.0.1:1/v1"
    assert loaded.settings.providers["mine"]["api_key"] == "topsecret1"
    assert loaded.settings.values() == loaded.values


def test_providers_merge_key_by_key_over_the_layers(user_dir: Path) -> None:
    write_user(
        user_dir,
        '[providers.a]\nkind = "openai_chat"\nbase_url = "http://one"\n[providers.b]\nx = 1\n',
    )
    loaded = load({}, user_dir, None, {"providers": {"a": {"base_url": "http://two"}}})
    assert loaded.settings.providers == {
        "a": {"kind": "openai_chat", "base_url": "http://two"},
        "b": {"x": 1},
    }


def test_a_key_in_a_file_that_others_can_read_is_told(user_dir: Path) -> None:
    path = write_user(user_dir, '[providers.a]\napi_key = "topsecret1"\n')
    assert load({}, user_dir).warnings == ()
    path.chmod(0o644)
    (warning,) = load({}, user_dir).warnings
    assert f"chmod 600 {path}" in str(warning)
    assert "topsecret1" not in str(warning)


def test_a_wrong_secret_is_not_quoted_in_its_warning(user_dir: Path) -> None:
    write_user(user_dir, 'providers = "topsecret-value-1"\n')
    assert "topsecret" not in "".join(messages(load({}, user_dir)))


def test_the_store_may_be_named_as_a_folder_and_the_default_follows_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = load({"CALLBOARD_STORE": str(tmp_path)}, tmp_path).settings
    assert store_path(folder) == tmp_path / "callboard.db"
    assert store_path(load({"CALLBOARD_STORE": "new/"}, tmp_path).settings) == (
        Path.cwd() / "new" / "callboard.db"
    )
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "conf"))
    if os.name == "posix" and "darwin" not in os.uname().sysname.lower():
        assert store_path(Settings()) == tmp_path / "data" / "callboard" / "callboard.db"
        assert user_config_dir({}) == tmp_path / "conf" / "callboard"
    assert user_config_dir({"CALLBOARD_CONFIG_DIR": str(tmp_path)}) == tmp_path
