"""Runs the suites of ``editors/vscode/test/exthost`` inside the extension host of a real VS Code.

A suite is run once, in a window of its own, and each of its tests is a test here. What it needs stands in
a YAML file of its name beside it: `scenario`, `model`, `settings`, `environ`, `trusted`, `server`, and
`files` of the workspace, texts by name.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from vscode_build import once, suites
from vscode_tools import EXTENSION

SUITES = sorted((EXTENSION / "test" / "exthost" / "suite").glob("*.ts"))
A_TEST = re.compile(r'^test\(\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)
PATIENCE_S = 60.0
"""For one test of a suite; the first has VS Code's start before it."""


def names_in(suite: Path) -> list[str]:
    """The names of its tests, in their order."""
    return [json.loads(f'"{name}"') for name in A_TEST.findall(suite.read_text("utf-8"))]


def wishes_for(suite: Path) -> dict[str, Any]:
    path = suite.with_suffix(".yaml")
    return yaml.safe_load(path.read_text("utf-8")) if path.exists() else {}


def run_suite(
    open_code: Callable[..., Any], bundle: Path, wishes: dict[str, Any]
) -> dict[str, Any]:
    """What came of a suite: `tests`, or the `fault` that kept them from running."""
    result = bundle.with_suffix(f".{bundle.stem}.json")
    files: dict[str, str] = wishes.pop("files", {})
    told = {"EXTHOST_TESTS": str(bundle), "EXTHOST_RESULT": str(result)}
    code = open_code(driven=True, environ={**wishes.pop("environ", {}), **told}, **wishes)
    for name, text in files.items():
        path = code.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    window = code.open()
    so_far = bundle.with_suffix(f".{bundle.stem}.json.so-far")
    ran = ""
    try:
        while not result.exists():
            window.wait_for(
                lambda ran=ran: result.exists() or _read(so_far) != ran,
                f"the next test of {bundle.stem} after {ran}",
                deadline=PATIENCE_S,
            )
            ran = _read(so_far)
    except AssertionError as fault:  # told to each of its tests, not waited for by each
        return {"fault": str(fault)}
    outcome = json.loads(result.read_text("utf-8"))
    if "fault" in outcome or any("error" in test for test in outcome["tests"]):
        outcome["told"] = code.told("as it was then:")
    return outcome


def _read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


@pytest.mark.timeout(400)  # the first runs them all
@pytest.mark.parametrize(
    ("suite", "name"),
    [
        pytest.param(suite, name, id=f"{suite.stem}: {name}")
        for suite in SUITES
        for name in names_in(suite)
    ],
)
def test_in_extension_host(
    open_code: Callable[..., Any], shared: Path, suite: Path, name: str
) -> None:
    bundle = suites(shared) / f"{suite.stem}.cjs"

    def run(path: Path) -> None:
        path.write_text(json.dumps(run_suite(open_code, bundle, wishes_for(suite))), "utf-8")

    outcome = json.loads(once(shared, f"outcome-{suite.stem}.json", run).read_text("utf-8"))
    told = outcome.get("told", "")
    assert "fault" not in outcome, f"{outcome['fault']}\n{told}"
    results = {test["name"]: test for test in outcome["tests"]}
    assert [*results] == names_in(suite), "the names of tests are plain strings, and no two are one"
    assert "error" not in results[name], f"{results[name]['error']}\n{told}"


def test_every_suite_has_tests() -> None:
    assert SUITES
    assert [suite.stem for suite in SUITES if not names_in(suite)] == []
