"""``callboard editor``: where the editors' plugins are, in a checkout and in a wheel."""

import os
import subprocess
import sys
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
    assert "Plugins come for: nvim." in result.err


def test_an_installation_without_plugins_says_so(tmp_path: Path) -> None:
    code = (
        "import callboard.cli.editor as editor, callboard.cli as cli;"
        f"editor.__file__ = {str(tmp_path / 'a' / 'b' / 'cli' / 'editor.py')!r};"
        "raise SystemExit(cli.main(['editor', 'path', 'nvim']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "this installation lacks the plugin for nvim" in done.stderr


def test_a_wheel_carries_the_plugin_without_its_tests(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    said = subprocess.run(
        [sys.executable, "-P", "-m", "callboard", "editor", "path", "nvim"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(site)},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    folder = Path(said.removesuffix("\n"))
    assert folder == site / "callboard" / "editors" / "nvim"
    carried = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert "plugin/callboard.lua" in carried
    assert "lua/callboard/init.lua" in carried
    assert carried == _worth_carrying()


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
