"""``callboard editor``: where the editors' plugins are, in a checkout and in a wheel."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from cli_harness import Cli, Terminal

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "editors" / "nvim"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def test_a_checkout_tells_its_own_plugin_with_nothing_around_it(cli: Cli) -> None:
    assert cli("editor", "path", "nvim").out == f"{PLUGIN}\n"
    terminal = Terminal(cli, "editor", "path", "nvim", columns=20)
    assert terminal.finish() == 0
    assert terminal.shown == f"{PLUGIN}\n"


@pytest.mark.parametrize("unknown", ["emacs", "../nvim", ""])
def test_an_unknown_editor_is_told_which_there_are(cli: Cli, unknown: str) -> None:
    result = cli("editor", "path", unknown)
    assert (result.code, result.out) == (2, "")
    assert f"no plugin for the editor {unknown!r}" in result.err
    assert "Plugins come for: nvim, vscode." in result.err


def test_an_installation_without_plugins_says_so(tmp_path: Path) -> None:
    for editor in ("nvim", "vscode"):
        done = elsewhere(tmp_path, "path", editor)
        assert done.returncode == 1
        assert f"this installation lacks the plugin for {editor}" in done.stderr


def elsewhere(
    checkout: Path, *words: str, path: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """``callboard editor`` as of another checkout, with a PATH of its own."""
    module = checkout / "server" / "callboard" / "cli" / "editor.py"
    code = (
        "import callboard.cli.editor as editor, callboard.cli as cli;"
        f"editor.__file__ = {str(module)!r};"
        f"raise SystemExit(cli.main(['editor', *{words!r}]))"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": str(path or checkout), "HOME": str(checkout), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One with a packed extension, in a folder whose name is not a plain one."""
    folder = tmp_path / "check out & more"
    package = folder / "editors" / "vscode" / "dist" / "callboard.vsix"
    package.parent.mkdir(parents=True)
    package.write_bytes(b"PK")
    (folder / "editors" / "vscode" / "package.json").write_text("{}", "utf-8")
    return folder


def editor_at(folder: Path, name: str, then: str = "exit 0") -> Path:
    """A command that notes its words, one a line."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >"$0.told"\n{then}\n', "utf-8")
    program.chmod(0o755)
    return program


def test_the_packed_extension_is_told_and_installed(checkout: Path, tmp_path: Path) -> None:
    package = checkout / "editors" / "vscode" / "dist" / "callboard.vsix"
    assert elsewhere(checkout, "path", "vscode").stdout == f"{package}\n"
    code = editor_at(tmp_path / "bin", "code")
    cursor = editor_at(tmp_path / "bin", "cursor")
    done = elsewhere(checkout, "install", "vscode", path=tmp_path / "bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Installed the Callboard extension with {code}" in done.stdout
    assert f"Not into these, which --command can name: {cursor}" in done.stdout
    assert "Developer: Reload Window" in done.stdout
    assert (
        f"set `callboard.server.path` to {Path(sys.executable).with_name('callboard')}"
        in done.stdout
    )
    told = (tmp_path / "bin" / "code.told").read_text("utf-8")
    assert told.splitlines() == ["--install-extension", str(package), "--force"]
    assert not (tmp_path / "bin" / "cursor.told").exists()


@pytest.mark.parametrize("name", ["code", "code-insiders", "codium", "cursor", "code-server"])
def test_each_editor_made_of_vs_code_is_found(checkout: Path, tmp_path: Path, name: str) -> None:
    editor_at(tmp_path / "bin", name)
    done = elsewhere(checkout, "install", "vscode", path=tmp_path / "bin")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bin" / f"{name}.told").exists()
    assert "Not into" not in done.stdout


def test_the_command_that_is_named_is_the_one(checkout: Path, tmp_path: Path) -> None:
    editor_at(tmp_path / "bin", "code")
    own = editor_at(tmp_path / "own place", "my-code")
    done = elsewhere(checkout, "install", "vscode", "--command", str(own), path=tmp_path / "bin")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "own place" / "my-code.told").exists()
    assert not (tmp_path / "bin" / "code.told").exists()


def test_what_keeps_it_from_being_installed_is_told(checkout: Path, tmp_path: Path) -> None:
    nowhere = elsewhere(checkout, "install", "vscode")
    assert nowhere.returncode == 1
    assert "found no VS Code" in nowhere.stderr
    assert "Install from VSIX" in nowhere.stderr
    unknown = elsewhere(checkout, "install", "vscode", "--command", "no-such-code")
    assert unknown.returncode == 2
    assert "there is no command 'no-such-code'" in unknown.stderr
    editor_at(tmp_path / "bin", "code", then="printf 'no \\033[31mdisk left' >&2; exit 7")
    refused = elsewhere(checkout, "install", "vscode", path=tmp_path / "bin")
    assert refused.returncode == 1
    assert "it ended with 7" in refused.stderr
    assert "disk left" in refused.stderr
    assert "\033" not in refused.stderr
    assert "Traceback" not in refused.stderr
    broken = editor_at(tmp_path / "broken", "code")
    broken.write_text("#!/no/such/shell\n", "utf-8")
    unrunnable = elsewhere(checkout, "install", "vscode", path=tmp_path / "broken")
    assert unrunnable.returncode == 1
    assert f"cannot run {broken}" in unrunnable.stderr


def test_a_checkout_that_has_not_packed_it_says_how(checkout: Path, tmp_path: Path) -> None:
    (checkout / "editors" / "vscode" / "dist" / "callboard.vsix").unlink()
    editor_at(tmp_path / "bin", "code")
    for words in (("path", "vscode"), ("install", "vscode")):
        done = elsewhere(checkout, *words, path=tmp_path / "bin")
        assert done.returncode == 1
        assert "not packed in this checkout" in done.stderr
        assert "`make vsix` packs it" in done.stderr
    assert not (tmp_path / "bin" / "code.told").exists()


def test_neovim_needs_no_installing(cli: Cli) -> None:
    result = cli("editor", "install", "nvim")
    assert result.code == 2
    assert "`callboard editor path nvim` prints the folder" in result.err


def test_the_extension_is_of_the_same_release() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    manifest = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text("utf-8"))
    assert manifest["version"] == project["version"]


def build_wheel(checkout: Path, folder: Path) -> Path:
    """What an installation of the wheel has on its path."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=checkout,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    site = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def installed(site: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """``callboard editor`` of an installation."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "callboard", "editor", *words],
        env={"PATH": os.environ["PATH"], "HOME": str(site.parent), "PYTHONPATH": str(site)},
        cwd=site.parent,
        check=False,
        capture_output=True,
        text=True,
    )


def test_a_wheel_carries_the_plugins_without_their_tests(tmp_path: Path) -> None:
    site = build_wheel(ROOT, tmp_path)
    folder = Path(installed(site, "path", "nvim").stdout.removesuffix("\n"))
    assert folder == site / "callboard" / "editors" / "nvim"
    carried = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert "plugin/callboard.lua" in carried
    assert "lua/callboard/init.lua" in carried
    assert carried == _worth_carrying()
    extension = site / "callboard" / "editors" / "vscode"
    if (ROOT / "editors" / "vscode" / "node_modules" / ".installed").exists():
        package = extension / "callboard.vsix"
        assert [*extension.rglob("*")] == [package]
        assert installed(site, "path", "vscode").stdout == f"{package}\n"
        with zipfile.ZipFile(package) as archive:
            assert "extension/dist/extension.cjs" in archive.namelist()


def test_a_wheel_can_be_made_without_the_extension(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in ("server", "rpc_schema", "editors", "demo"):
        shutil.copytree(
            ROOT / name,
            checkout / name,
            ignore=shutil.ignore_patterns("node_modules", "dist", "__pycache__", "tests", "test"),
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout / name)
    site = build_wheel(checkout, tmp_path / "built")
    done = installed(site, "install", "vscode")
    assert done.returncode == 1
    assert "this installation lacks the plugin for vscode" in done.stderr
    assert "Install Callboard from a wheel that carries it" in done.stderr


def _worth_carrying() -> set[str]:
    """What git knows of the plugin, or would know, but for what only its development needs."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=PLUGIN,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = {name for name in listed.split("\0") if name and (PLUGIN / name).exists()}
    return {
        name
        for name in names
        if not name.startswith("tests/") and name not in (".luacheckrc", "stylua.toml")
    }
