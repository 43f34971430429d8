"""``callboard doctor``: what is found, what is missing, what to do (issue 2, item 9)."""

from pathlib import Path

import pytest
from attrs import frozen

from callboard import doctor
from callboard.doctor import Check, examine
from callboard_rpc.errors import CallboardError

pytestmark = pytest.mark.anyio


@frozen
class Chosen:
    model_id: str
    source: str


@frozen
class FakeCatalog:
    outcome: Chosen | CallboardError

    async def selected(self) -> Chosen:
        if isinstance(self.outcome, CallboardError):
            raise self.outcome
        return self.outcome


MODEL = FakeCatalog(Chosen("openai/gpt", "OPENAI_API_KEY is set"))


async def look(tmp_path: Path, catalog: FakeCatalog = MODEL, **environ: str) -> list[Check]:
    (tmp_path / "bin").mkdir(exist_ok=True)
    (tmp_path / "ws").mkdir(exist_ok=True)
    values = {
        "CALLBOARD_STORE": str(tmp_path / "s" / "x.db"),
        "PATH": str(tmp_path / "bin"),
        **environ,
    }
    return list(
        await examine(values, user_dir=tmp_path / "config", cwd=tmp_path / "ws", catalog=catalog)
    )


def named(checks: list[Check], name: str) -> Check:
    return next(check for check in checks if check.name == name)


async def test_an_empty_home_is_enough_and_every_finding_is_there(tmp_path: Path) -> None:
    checks = await look(tmp_path)
    assert [c.name for c in checks] == [
        "Python", "SQLite", "Store", "Disk", "Configuration", "Profiles", "Keys", "Model",
        "ripgrep", "git", "shell", "Editors",
    ]  # fmt: skip
    assert not [c for c in checks if c.status == "fail"]
    assert "it is made at the first start" in named(checks, "Store").found
    assert named(checks, "Model").found == "openai/gpt: OPENAI_API_KEY is set"
    assert not (tmp_path / "s").exists()  # looking changes nothing


async def test_keys_are_named_and_never_shown(tmp_path: Path) -> None:
    checks = await look(
        tmp_path, OPENAI_API_KEY="sk-topsecret-value", ANTHROPIC_API_KEY="topsecret-2"
    )
    keys = named(checks, "Keys")
    assert "openai" in keys.found and "OPENAI_API_KEY" in keys.found
    assert "anthropic" in keys.found
    assert "topsecret" not in repr(checks)
    none = named(await look(tmp_path), "Keys")
    assert none.found == "none" and "OPENAI_API_KEY" in none.advice


async def test_a_model_that_cannot_be_used_fails_and_the_demo_warns(tmp_path: Path) -> None:
    fault = CallboardError("modelUnavailable", "there is no provider 'x'")
    model = named(await look(tmp_path, FakeCatalog(fault)), "Model")
    assert (model.status, model.found) == ("fail", "there is no provider 'x'")
    assert "CALLBOARD_MODEL" in model.advice
    demo = named(
        await look(tmp_path, FakeCatalog(Chosen("scripted/demo", "nothing found"))), "Model"
    )
    assert demo.status == "warn" and demo.advice


async def test_the_catalogue_that_the_server_uses_can_be_asked(tmp_path: Path) -> None:
    found = await examine(
        {"CALLBOARD_MODEL": "scripted/demo", "CALLBOARD_STORE": str(tmp_path / "x.db"), "PATH": ""},
        user_dir=tmp_path,
        cwd=tmp_path,
    )
    assert "scripted/demo" in named(list(found), "Model").found


async def test_each_warning_of_the_configuration_is_told(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("[limits]\nqueue = 'x'\nnope = 1\n", "utf-8")
    (tmp_path / "ws" / ".callboard").mkdir(parents=True)
    (tmp_path / "ws" / ".callboard" / "config.toml").write_text("[broken", "utf-8")
    found = [c for c in await look(tmp_path) if c.name == "Configuration"]
    assert [c.status for c in found] == ["warn", "warn", "warn"]
    assert "config.toml:2: limits.queue" in found[0].found
    assert "until it is mended" in found[2].advice


async def test_a_file_is_well_or_has_a_warning_and_never_both(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    mine = tmp_path / "config" / "config.toml"
    mine.write_text("[broken", "utf-8")
    workspace = tmp_path / "ws" / ".callboard" / "config.toml"
    workspace.parent.mkdir(parents=True)
    workspace.write_text("instructions = 'x'\n", "utf-8")
    found = [c for c in await look(tmp_path) if c.name == "Configuration"]
    assert [c.status for c in found] == ["ok", "warn"]
    assert found[0].found == str(workspace)
    assert found[1].found.startswith(f"{mine}:1: is not valid TOML")
    mine.unlink()
    workspace.unlink()
    (only,) = [c for c in await look(tmp_path, CALLBOARD_NOPE="1") if c.name == "Configuration"]
    assert (only.status, "CALLBOARD_NOPE: is no setting" in only.found) == ("warn", True)


async def test_profiles_are_counted_and_the_broken_ones_are_named(tmp_path: Path) -> None:
    agents = tmp_path / "config" / "agents"
    agents.mkdir(parents=True)
    assert "only the built-in one" in named(await look(tmp_path), "Profiles").found
    (agents / "one.md").write_text("Be brief.", "utf-8")
    (agents / "two.md").write_text("---\nmode: plan\n---\nPlan.", "utf-8")
    (agents / "bad.md").write_text("---\nmodus: plan\n---\n", "utf-8")
    more = tmp_path / "ws" / ".callboard" / "agents"
    more.mkdir(parents=True)
    (more / "three.md").write_text("Be long.", "utf-8")
    found = [c for c in await look(tmp_path) if c.name == "Profiles"]
    assert [c.status for c in found] == ["ok", "warn"]
    assert found[0].found == f"2 in {agents}, 1 in {more}"
    assert found[1].found.startswith(f"{agents / 'bad.md'}: modus: is no field")


async def test_the_address_of_a_provider_is_named_without_its_secrets(tmp_path: Path) -> None:
    assert "Address" not in {c.name for c in await look(tmp_path, OPENAI_BASE_URL=" ")}
    checks = await look(
        tmp_path,
        OPENAI_BASE_URL="https://llm.example:8443/v1",
        ANTHROPIC_BASE_URL="https://me:topsecret@llm.example",
    )
    openai, anthropic = (c for c in checks if c.name == "Address")
    assert openai.found == "openai is at https://llm.example:8443/v1, by OPENAI_BASE_URL"
    assert anthropic.status == "warn"
    assert "ANTHROPIC_BASE_URL may not hold a user or a password" in anthropic.found
    assert "topsecret" not in repr(checks)


async def test_programs_and_editors_are_looked_for_on_the_given_path(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    assert named(await look(tmp_path), "git").status == "warn"
    for name in ("git", "rg", "nvim"):
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\n", "utf-8")
        program.chmod(0o755)
    checks = await look(tmp_path)
    assert named(checks, "git").found == str(tmp_path / "bin" / "git")
    assert named(checks, "ripgrep").status == "ok"
    assert named(checks, "Editors").found == f"Neovim ({tmp_path / 'bin' / 'nvim'})"
    assert named(checks, "shell").status == "warn"


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("3.40.1", "warn"),
        ("3.44.6", "ok"),
        ("3.50.6", "warn"),
        ("3.50.7", "ok"),
        ("3.51.2", "warn"),
        ("3.51.3", "ok"),
        ("3.53.4", "ok"),
    ],
)
async def test_design_3_the_wal_reset_bug_is_told_by_version(version: str, status: str) -> None:
    check = doctor.sqlite_check(version, "sqlite3")
    assert check.status == status
    assert version in check.found


async def test_an_old_python_fails() -> None:
    assert doctor.python_check((3, 10, 9), "CPython").status == "fail"
    assert doctor.python_check((3, 11, 0), "CPython").status == "ok"


@pytest.mark.parametrize(
    ("make", "status", "words"),
    [
        (lambda p: p.write_bytes(b"SQLite format 3\0" + b"x" * 3000), "ok", "3 KiB"),
        (lambda p: p.write_bytes(b""), "ok", "0 bytes"),
        (lambda p: p.write_bytes(b"something else"), "fail", "is no SQLite database"),
        (lambda p: p.mkdir(), "ok", "callboard.db"),
    ],
)
async def test_the_stores_file_is_looked_at(
    tmp_path: Path, make: object, status: str, words: str
) -> None:
    (tmp_path / "s").mkdir(mode=0o700)
    path = tmp_path / "s" / "x.db"
    assert callable(make)
    make(path)
    path.chmod(0o700 if path.is_dir() else 0o600)
    check = named(await look(tmp_path), "Store")
    assert check.status == status
    assert words in check.found


async def test_a_store_that_others_can_read_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir(mode=0o700)
    path = tmp_path / "s" / "x.db"
    path.write_bytes(b"SQLite format 3\0")
    path.chmod(0o644)
    check = named(await look(tmp_path), "Store")
    assert check.status == "warn"
    assert check.advice == f"Run: chmod 600 {path}"


async def test_a_store_that_is_a_link_to_itself_fails(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir(mode=0o700)
    loop = tmp_path / "s" / "x.db"
    loop.symlink_to(loop)
    check = named(await look(tmp_path), "Store")
    assert (check.status, "link to itself" in check.found) == ("fail", True)


async def test_a_store_below_a_file_fails(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("x", "utf-8")
    assert named(await look(tmp_path), "Store").status == "fail"


async def test_network_file_systems_and_full_disks_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        free = 1024

    monkeypatch.setattr("shutil.disk_usage", lambda _: Full)
    disk = named(await look(tmp_path), "Disk")
    assert (disk.status, "1 KiB free" in disk.found) == ("fail", True)
    monkeypatch.setattr("callboard.log.filesystem.type_of", lambda _: "nfs4")
    disk = named(await look(tmp_path), "Disk")
    assert disk.status == "fail" and "network file system (nfs4)" in disk.found
    assert "--store" in disk.advice


async def test_hooks_are_counted_and_one_that_cannot_run_is_named_but_not_shown(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    good = folder / "good.sh"
    good.write_text("#!/bin/sh\n")
    good.chmod(0o700)
    (folder / "config.toml").write_text(
        "[[hooks.pre_tool_use]]\ncommand = './good.sh --token s3cret'\n"
        "[[hooks.pre_tool_use]]\ncommand = './gone.sh --token s3cret'\n"
        "[[hooks.stop]]\ncommand = 'KEY=s3cret anything | at --all'\n"
        "[[hooks.stop]]\ncommand = ['no-such-program', 's3cret']\n"
    )
    count, *missing = [each for each in await look(tmp_path) if each.name == "Hooks"]
    assert (count.status, count.found) == ("ok", "2 pre_tool_use, 2 stop")
    assert [each.status for each in missing] == ["warn", "warn"]
    assert missing[0].found.startswith("hooks.pre_tool_use number 2: ")
    assert missing[1].found.startswith("hooks.stop number 2: ")
    assert "s3cret" not in "".join(each.found + each.advice for each in missing)
