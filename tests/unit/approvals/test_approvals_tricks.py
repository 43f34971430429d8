"""Command lines that try to get more past a rule than it says, judged by what a real shell makes of them."""

import subprocess
from pathlib import Path

import pytest

from callboard.approvals.patterns import allows_command, denies_command
from callboard.approvals.policy import never_run

TRICKS = [
    "npm test \\\r\ntouch x",
    "npm test\r\ntouch x",
    "npm test \\\\\r\ntouch x",
    "npm test; touch x",
    "npm test\ntouch x",
    "npm test & touch x",
    "npm test || touch x",
    "npm test | touch x",
    "npm test $(touch x)",
    "npm test `touch x`",
    "npm test $[$(touch x)]",
    "npm test ${y:-$(touch x)}",
    "npm test <(touch x)",
    "npm test <<E\n$(touch x)\nE",
    "npm test <<< $(touch x)",
    "npm test a#b; touch x",
    "npm test \\\n; touch x",
    "npm test > x",
    "npm test >| x",
    "npm test <> x",
    "npm test 3>> x",
    "npm test {fd}> x",
    "npm test > -",
    "npm test >> 1",
    "npm test &> -",
    "npm() { touch x; }; npm test",
    "alias npm='touch x'\nnpm test",
    "PATH=. npm test",
    "$'touch' x; npm test",
    "{touch,x}; npm test",
]


@pytest.mark.parametrize("line", TRICKS)
def test_what_a_rule_for_npm_test_allows_does_nothing_else(tmp_path: Path, line: str) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    npm = programs / "npm"
    npm.write_text("#!/bin/sh\nexit 1\n")
    npm.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    (work / "npm").write_text("#!/bin/sh\n: > x\n")
    (work / "npm").chmod(0o755)
    subprocess.run(
        ["bash", "-c", line],
        cwd=work,
        env={"PATH": f"{programs}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
    )
    did_more = {path.name for path in work.iterdir()} != {"npm"}
    assert not (did_more and allows_command(["npm test"], line))


def test_what_is_no_trick_is_allowed() -> None:
    for line in (
        "npm test",
        "npm  test -- --watch",
        "npm test \\\n -- a",
        "npm test 2>&1 >/dev/null",
    ):
        assert allows_command(["npm test"], line), line


@pytest.mark.parametrize(
    "line",
    [
        "echo \\\r\nrm -rf /",
        "{rm,-rf,/}",
        "rm -rf {/,x}",
        "r{,}m x; {r..r}m -rf /",
        "env -S 'rm -rf /'",
        "env -S'rm -rf' /",
        "env --split-string='rm -rf /'",
        "bash -c -- 'rm -rf /'",
        "bash -c -o pipefail 'rm -rf /'",
    ],
)
def test_what_is_never_run_is_found_however_it_is_spelt(line: str) -> None:
    assert never_run(line) is not None
    assert denies_command("rm", line)


def test_braces_without_end_are_read_all_the_same() -> None:
    assert not allows_command(["npm test"], "npm test " + "{a,b}" * 4000 + "; x")
    assert not denies_command("rm", "echo " + "{a,b}" * 200)
    assert never_run("echo " + "{" * 5000) is None
