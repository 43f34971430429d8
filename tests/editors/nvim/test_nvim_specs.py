"""Runs every spec file of the plugin in every Neovim found, each in a process and a home of its own."""

import re
from pathlib import Path

import pytest
from nvim_versions import PLUGIN

from harness.editor_home import private_environ
from harness.foreign_tests import ForeignRun, run_foreign

RUN = PLUGIN / "tests" / "run.lua"
SPECS = sorted((PLUGIN / "tests" / "spec").rglob("*_spec.lua"))


def run_specs(nvim: Path, home: Path, *specs: Path) -> ForeignRun:
    environ = {"CALLBOARD_TESTS_NVIM": str(nvim), "NVIM_LOG_FILE": str(home / "nvim.log")}
    return run_foreign(
        [nvim, "--clean", "-n", "-l", RUN, "-o", "plainTerminal", *specs],
        folder=home,
        environ={**private_environ(home), **environ},
    )


@pytest.mark.parametrize(
    "spec", SPECS, ids=lambda path: path.relative_to(PLUGIN / "tests" / "spec").as_posix()
)
def test_spec(nvim: Path, spec: Path, tmp_path: Path) -> None:
    run = run_specs(nvim, tmp_path, spec)
    counts = re.search(r"^(\d+) success\w* / .* / (\d+) pending", run.said, re.MULTILINE)
    assert counts, run.said
    run.assert_all_ran(passed=int(counts[1]), left_out=int(counts[2]))


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
    run_specs(nvim, tmp_path / "home", spec).assert_failed(told)
