"""Runs every file of the extension's unit tests, each in a process of its own."""

import re
import sys
from pathlib import Path

import pytest
from vscode_build import node_environ, run_node, units
from vscode_tools import EXTENSION, node

from harness.foreign_tests import ForeignRun, run_foreign

FOLDER = EXTENSION / "test" / "unit"
FILES = sorted(FOLDER.rglob("*.test.ts"))


def run_units(bundle: Path, home: Path, patience_ms: int = 60_000) -> ForeignRun:
    program = node()
    assert program is not None
    return run_foreign(
        [
            program, "--enable-source-maps", "--test", "--test-reporter=spec",
            f"--test-timeout={patience_ms}", bundle,
        ],
        folder=EXTENSION,
        environ={**node_environ(home), "CALLBOARD_SERVER": str(Path(sys.executable).parent / "callboard")},
    )  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_unit(file: Path, shared: Path, tmp_path: Path) -> None:
    name = file.relative_to(FOLDER).with_suffix(".cjs")
    run = run_units(units(shared) / name, tmp_path)
    counts = {word: int(n) for word, n in re.findall(r"^ℹ (\w+) (\d+)$", run.said, re.MULTILINE)}
    assert {"pass", "skipped", "todo"} <= counts.keys(), run.said
    run.assert_all_ran(passed=counts["pass"], left_out=counts["skipped"] + counts["todo"])


def test_there_are_units() -> None:
    assert FILES


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("it('fails', () => { assert.equal(1 as number, 2); });", "1 !== 2"),
        ("describe('it', () => { it('breaks', () => { throw new Error('broken'); }); });", "broken"),
        ("throw new Error('at once');", "at once"),
        ("it('never ends', () => new Promise(() => undefined));", "timed out"),
    ],
)  # fmt: skip
def test_a_unit_test_that_fails_is_told(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "made.test.ts"
    imports = "import assert from 'node:assert/strict'; import { describe, it } from 'node:test';"
    file.write_text(f"{imports} void assert; void describe; void it; {text}", "utf-8")
    said = run_node("test/bundle.mjs", "unit", tmp_path / "out", file)
    run_units(Path(said.strip()), tmp_path, patience_ms=2000).assert_failed(told)
