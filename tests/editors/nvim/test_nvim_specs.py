"""Runs every spec file of the plugin in every Neovim found, each in a process and a home of its own."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from nvim_versions import PLUGIN

RUN = PLUGIN / "tests" / "run.lua"
SPECS = sorted((PLUGIN / "tests" / "spec").rglob("*_spec.lua"))


def run_specs(nvim: Path, home: Path, *specs: Path) -> tuple[int, str]:
    """The exit code and what busted and the specs wrote."""
    folders = {"HOME": home, "XDG_RUNTIME_DIR": home / "run"}
    for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
        folders[f"XDG_{kind}_HOME"] = home / kind.lower()
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    done = subprocess.run(
        [nvim, "--clean", "-n", "-l", RUN, "-o", "plainTerminal", *specs],
        env={
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "CALLBOARD_TESTS_NVIM": str(nvim),
            "NVIM_LOG_FILE": str(home / "nvim.log"),
            **{name: str(folder) for name, folder in folders.items()},
        },
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "spec", SPECS, ids=lambda path: path.relative_to(PLUGIN / "tests" / "spec").as_posix()
)
def test_spec(nvim: Path, spec: Path, tmp_path: Path) -> None:
    code, said = run_specs(nvim, tmp_path, spec)
    assert code == 0, said
    counts = re.search(r"^(\d+) success\w* / .* / (\d+) pending", said, re.MULTILINE)
    assert counts, said
    assert int(counts[1]) > 0, f"no test ran:\n{said}"
    assert int(counts[2]) == 0, f"a test is left out:\n{said}"


def test_there_are_specs() -> None:
    assert SPECS


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("describe('it', function() it('fails', function() assert.equal(1, 2) end) end)", "(number) 2"),
        ("describe('it', function() it('breaks', function() error('broken') end) end)", "broken"),
        ("describe('it', function() assert.equal('loads', nil) end)", "loads"),
        ("this is no Lua", "expected near 'is'"),
    ],
)  # fmt: skip
def test_a_spec_that_fails_is_told(nvim: Path, text: str, told: str, tmp_path: Path) -> None:
    spec = tmp_path / "made_spec.lua"
    spec.write_text(text, "utf-8")
    code, said = run_specs(nvim, tmp_path / "home", spec)
    assert code != 0
    assert told in said
