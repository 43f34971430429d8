"""Runs every file of the extension's unit tests, each in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from vscode_build import node_environ, run_node, units
from vscode_tools import EXTENSION, node

FOLDER = EXTENSION / "test" / "unit"
FILES = sorted(FOLDER.rglob("*.test.ts"))


def run_units(bundle: Path, home: Path, patience_ms: int = 60_000) -> tuple[int, str]:
    """The exit code and what Node's runner wrote."""
    program = node()
    assert program is not None
    done = subprocess.run(
        [
            program, "--enable-source-maps", "--test", "--test-reporter=spec",
            f"--test-timeout={patience_ms}", bundle,
        ],
        cwd=EXTENSION,
        env={**node_environ(home), "CALLBOARD_SERVER": str(Path(sys.executable).parent / "callboard")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_unit(file: Path, shared: Path, tmp_path: Path) -> None:
    name = file.relative_to(FOLDER).with_suffix(".cjs")
    code, said = run_units(units(shared) / name, tmp_path)
    assert code == 0, said
    counts = {word: int(n) for word, n in re.findall(r"^ℹ (\w+) (\d+)$", said, re.MULTILINE)}
    assert counts["pass"] > 0, f"no test ran:\n{said}"
    assert counts["skipped"] == counts["todo"] == 0, f"a test is left out:\n{said}"


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
    code, said = run_units(Path(said.strip()), tmp_path, patience_ms=2000)
    assert code != 0
    assert told in said
