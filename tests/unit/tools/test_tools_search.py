"""list_files and search_files: what .gitignore leaves out, and no pattern that hangs the host."""

import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from tools_workbench import Workbench, every_thread_busy

from callboard.tools import beneath, search_jobs, searching, tree
from callboard.tools.base import ToolFailure
from callboard.tools.workspace import FolderWorkspace

pytestmark = pytest.mark.anyio

# Speaks ripgrep's --json, far enough for the tests: what matters here is how it is called and read.
FAKE_RIPGREP = """
import json, os, re, sys
args = sys.argv[1:]
open(os.path.dirname(sys.argv[0]) + "/../called.json", "w").write(json.dumps(args))
pattern = next(a for a in args if a.startswith("--regexp=")).removeprefix("--regexp=")
if "(?<" in pattern:
    sys.exit(2)
for folder, folders, names in os.walk(args[-1]):
    folders.sort()
    for name in sorted(names):
        path = os.path.join(folder, name)
        for number, line in enumerate(open(path, errors="replace"), 1):
            if re.search(pattern, line):
                data = {"path": {"text": path}, "lines": {"text": line}, "line_number": number,
                        "submatches": [{"start": re.search(pattern, line).start()}]}
                print(json.dumps({"type": "match", "data": data}))
print(json.dumps({"type": "summary", "data": {}}))
"""


@pytest.fixture
def project(bench: Workbench) -> Workbench:
    bench.write(".gitignore", "build/\n*.log\n!keep.log\n")
    bench.write(".git/config", "needle\n")
    bench.write("README.md", "a needle here\n")
    bench.write("src/main.py", "def needle():\n    return 'Needle'\n")
    bench.write("src/.gitignore", "generated.py\n")
    bench.write("src/generated.py", "needle\n")
    bench.write("build/out.py", "needle\n")
    bench.write("x.log", "needle\n")
    bench.write("keep.log", "needle\n")
    bench.write("binary", b"needle\x00")
    (bench.root / "out").symlink_to(bench.outside)
    (bench.outside / "needle.txt").write_text("needle outside\n")
    # No ripgrep here, whatever the machine has.
    bench.with_context(environment={"PATH": str(bench.root / "no-programs")})
    return bench


async def lines(bench: Workbench, tool: str, **arguments: Any) -> list[str]:
    return (await bench.call(tool, **arguments)).text.split("\n")


# --- list_files -------------------------------------------------------------------------------


async def test_a_listing_leaves_out_what_gitignore_does_and_follows_no_link(
    project: Workbench,
) -> None:
    assert await lines(project, "list_files") == [
        ".gitignore",
        "README.md",
        "binary",
        "keep.log",
        "out@",
        "src/",
        "src/.gitignore",
        "src/main.py",
    ]


async def test_depth_and_pattern(project: Workbench) -> None:
    assert await lines(project, "list_files", depth=1) == [
        ".gitignore", "README.md", "binary", "keep.log", "out@", "src/",
        "[down to depth 1; give a path or a depth to see more]",
    ]  # fmt: skip
    assert await lines(project, "list_files", pattern="*.py") == ["src/main.py"]
    assert await lines(project, "list_files", pattern="src/**") == ["src/.gitignore", "src/main.py"]
    assert await lines(project, "list_files", path="src", pattern="main.*") == ["src/main.py"]
    assert await lines(project, "list_files", pattern="*.rs") == ["(nothing matches)"]


async def test_an_ignored_folder_that_is_asked_for_is_shown(project: Workbench) -> None:
    assert await lines(project, "list_files", path="build") == ["build/out.py"]
    (project.root / "empty").mkdir()
    assert await lines(project, "list_files", path="empty") == ["(empty)"]


@pytest.mark.parametrize("tool", ["list_files", "search_files"])
async def test_places_that_are_not_there_or_not_allowed(project: Workbench, tool: str) -> None:
    more = {"pattern": "x"} if tool == "search_files" else {}
    with pytest.raises(ToolFailure, match="does not exist"):
        await project.call(tool, path="srcs", **more)
    for path in ("out", "..", "/etc", "out/needle.txt"):
        with pytest.raises(ToolFailure, match="outside"):
            await project.call(tool, path=path, **more)
        with pytest.raises(ToolFailure, match="outside"):
            await project.look(tool, path=path, **more)


async def test_a_listing_of_a_file_says_what_to_use(project: Workbench) -> None:
    with pytest.raises(ToolFailure, match="read_file"):
        await project.call("list_files", path="README.md")


async def test_a_long_listing_is_cut_with_a_note(bench: Workbench) -> None:
    for number in range(1100):
        bench.write(f"f{number:04}", "")
    outcome = await bench.call("list_files")
    assert outcome.truncated
    assert outcome.text.count("\n") == 1000 and "only the first 1000" in outcome.text


async def test_names_that_deceive_are_spelled_out(bench: Workbench) -> None:
    bench.write("a\nb\x1b[31m\u202e", "x")
    assert await lines(bench, "list_files") == ["a\\nb\\x1b[31m\\u202e"]


async def test_additional_folders_are_listed_by_their_whole_path(project: Workbench) -> None:
    (project.outside / "sub").mkdir()
    project.with_context(workspace=FolderWorkspace(project.root, [project.outside]))
    outside = str(project.outside)
    assert await lines(project, "list_files", path=outside) == [
        f"{outside}/needle.txt", f"{outside}/secret.txt", f"{outside}/sub/",
    ]  # fmt: skip
    assert await lines(project, "search_files", pattern="outside", path=outside) == [
        f"{outside}/needle.txt:1: needle outside"
    ]


def test_patterns_that_could_match_for_ever_are_not_tame() -> None:
    for tame in ("*.py", "**/*.min.js", "/a/**/b", "*_*_*", "[a-z]?.c"):
        assert tree.is_tame(tame)
    for wild in ("*a" * 20, "**/a/" * 10, "*" + "a*" * 5, "x" * 2000):
        assert not tree.is_tame(wild)


async def test_a_hostile_gitignore_takes_no_time(bench: Workbench) -> None:
    bench.write(".gitignore", "*a" * 30 + "b\n" + "**/a" * 40 + "\n[\nignored\n")
    bench.write("a" * 250, "")
    bench.write("ignored", "")
    started = time.monotonic()
    assert await lines(bench, "list_files") == [".gitignore", "a" * 250]
    assert time.monotonic() - started < 1
    with pytest.raises(ToolFailure, match="too many wildcards"):
        await bench.call("list_files", pattern="*a" * 20)


# --- search_files -----------------------------------------------------------------------------


async def test_a_search_finds_lines_in_text_files_that_are_not_ignored(project: Workbench) -> None:
    outcome = await project.call("search_files", pattern="needle")
    assert outcome.text.split("\n") == [
        "README.md:1: a needle here",
        "keep.log:1: needle",
        "src/main.py:1: def needle():",
    ]
    assert (outcome.locations[0].path, outcome.locations[0].line) == (
        str(project.root / "README.md"),
        1,
    )


async def test_the_ways_to_narrow_a_search(project: Workbench) -> None:
    async def found(**arguments: Any) -> list[str]:
        return await lines(project, "search_files", **arguments)

    assert await found(pattern="needle", glob="*.py") == ["src/main.py:1: def needle():"]
    assert await found(pattern="needle", path="src") == ["src/main.py:1: def needle():"]
    assert await found(pattern="needle", path="build") == ["build/out.py:1: needle"]
    assert await found(pattern="needle", path="x.log") == ["x.log:1: needle"]
    assert len(await found(pattern="NEEDLE", case_sensitive=False)) == 4
    assert await found(pattern=r"(?<=return )'\w+'$") == ["src/main.py:2:     return 'Needle'"]
    assert await found(pattern="nothing like it") == ["(no matches)"]
    cut = await project.call("search_files", pattern="needle", limit=2)
    assert cut.truncated and cut.text.split("\n")[2:] == [
        "[only the first 2 matches; narrow the search or raise limit]"
    ]


async def test_encodings_are_searched_and_long_lines_are_cut_around_the_match(
    project: Workbench,
) -> None:
    project.write("utf16.txt", b"\xff\xfe" + "zauber ä\r\n".encode("utf-16-le"))
    project.write("latin.txt", b"zauber \xe4\n")
    project.write("long.txt", "x" * 5000 + "zauber" + "y" * 5000)
    got = await lines(project, "search_files", pattern="zauber")
    assert got[0] == "latin.txt:1: zauber ä" and got[2] == "utf16.txt:1: zauber ä"
    assert "zauber" in got[1] and len(got[1]) < 400


async def test_a_pattern_that_is_none_is_a_clear_failure(project: Workbench) -> None:
    with pytest.raises(ToolFailure, match="not a regular expression: missing \\)"):
        await project.call("search_files", pattern="(")
    with pytest.raises(ToolFailure, match="wildcards"):
        await project.call("search_files", pattern="x", glob="*a" * 10)


async def test_a_pattern_that_backtracks_for_ever_neither_hangs_the_loop_nor_the_call(
    project: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "TIME_LIMIT_S", 0.5)
    project.write("aaa.txt", "found b\n")
    project.write("evil.txt", "a" * 60 + "!\n")
    project.write("zzz.txt", "never reached\n")
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await anyio.sleep(0.005)
            longest = max(longest, time.monotonic() - before)

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        started = time.monotonic()
        outcome = await project.call("search_files", pattern="b|^(a+)+$")
        elapsed = time.monotonic() - started
        group.cancel_scope.cancel()
    assert elapsed < 3 and longest < 0.4
    assert outcome.truncated and "not all was searched" in outcome.text
    assert "aaa.txt:1: found b" in outcome.text


async def test_a_cancelled_search_leaves_no_process(project: Workbench) -> None:
    import psutil

    project.write("evil.txt", "a" * 60 + "!\n")

    def workers() -> list[psutil.Process]:
        found: list[psutil.Process] = []
        for child in psutil.Process().children():
            with suppress(psutil.Error):  # one that has ended says nothing of itself any more
                if "search_worker.py" in " ".join(child.cmdline()):
                    found.append(child)
        return found

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: project.call("search_files", pattern="^(a+)+$"))
        with anyio.fail_after(60):
            while not workers():
                await anyio.sleep(0.005)
        group.cancel_scope.cancel()
    with anyio.fail_after(60):
        while workers():
            await anyio.sleep(0.005)


@pytest.mark.parametrize("tool", ["list_files", "search_files"])
async def test_what_may_take_long_has_threads_of_its_own(project: Workbench, tool: str) -> None:
    more = {"pattern": "needle"} if tool == "search_files" else {}
    with every_thread_busy(), anyio.fail_after(20):
        assert "README.md" in (await project.call(tool, **more)).text


async def test_special_files_and_large_ones_are_passed_over(
    project: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(project.root / "pipe")
    monkeypatch.setattr(search_jobs, "FILE_LIMIT_BYTES", 100)
    project.write("large.txt", "needle\n" * 100)
    assert len(await lines(project, "search_files", pattern="needle")) == 3


# --- ripgrep ----------------------------------------------------------------------------------


@pytest.fixture
def with_ripgrep(project: Workbench, tmp_path: Path) -> Workbench:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "rg").write_text(f"#!{sys.executable}\n{FAKE_RIPGREP}")
    (programs / "rg").chmod(0o755)
    project.with_context(environment={"PATH": str(programs)})
    return project


async def test_ripgrep_is_used_when_it_is_there(with_ripgrep: Workbench) -> None:
    got = await lines(with_ripgrep, "search_files", pattern="def needle", path="src", glob="*.py")
    assert got == ["src/main.py:1: def needle():"]
    called = (with_ripgrep.root.parent / "called.json").read_text()
    for argument in (
        "--no-config",
        "--hidden",
        "--glob=*.py",
        "--glob=!.git",
        "--regexp=def needle",
    ):
        assert f'"{argument}"' in called


async def test_a_pattern_cannot_become_an_option_of_ripgrep(with_ripgrep: Workbench) -> None:
    assert await lines(with_ripgrep, "search_files", pattern="--pre=evil", path="src") == [
        "(no matches)"
    ]
    assert '"--regexp=--pre=evil"' in (with_ripgrep.root.parent / "called.json").read_text()


async def test_what_ripgrep_cannot_read_python_searches(with_ripgrep: Workbench) -> None:
    got = await lines(with_ripgrep, "search_files", pattern=r"(?<=def )needle", path="src")
    assert got == ["src/main.py:1: def needle():"]


async def test_a_machine_with_ripgrep_finds_the_same(project: Workbench) -> None:
    """Where the machine has no ripgrep, both searches are Python's and the test holds trivially."""
    plain = await lines(project, "search_files", pattern="needle")
    program = shutil.which("rg")
    project.with_context(environment={"PATH": str(Path(program).parent) if program else ""})
    assert await lines(project, "search_files", pattern="needle") == plain
    assert await lines(project, "search_files", pattern="needle", path="build") == [
        "build/out.py:1: needle"
    ]


# --- somebody changes the places meanwhile ----------------------------------------------------


def search_in(project: Workbench, start: str) -> search_jobs.Search:
    workspace = project.context.workspace
    return search_jobs.Search(
        workspace=workspace,
        root=workspace.root,
        start=workspace.resolve(start),
        pattern="needle",
        glob=None,
        ignore_case=False,
        limit=100,
    )


def swap(place: Path, other: Path) -> None:
    """`other` takes the place of a folder, by a link."""
    place.rename(place.with_name("moved"))
    place.symlink_to(other)


@pytest.mark.parametrize("program", ["ripgrep", "python"])
@pytest.mark.parametrize("place", [".", "src"])
async def test_a_search_follows_no_link_that_takes_the_place_of_where_it_starts(
    with_ripgrep: Workbench, program: str, place: str
) -> None:
    search = search_in(with_ripgrep, "src")
    job = search_jobs.Job(search, searching.ripgrep(with_ripgrep.context.environment["PATH"]))
    if program == "python":
        job = search_jobs.Job(search, None)
    (with_ripgrep.outside / "src").mkdir()
    (with_ripgrep.outside / "src/main.py").write_text("needle outside\n")
    (with_ripgrep.outside / "main.py").write_text("needle outside\n")
    swap(with_ripgrep.root / place, with_ripgrep.outside)
    job.run()
    assert job.matches == []
    # a folder below the root that is a link by now is one that is not entered, as any other
    assert job.fault is not None or (program, place) == ("python", "src")


@pytest.mark.parametrize("program", ["ripgrep", "python"])
async def test_a_search_stays_in_the_folder_in_which_it_has_begun(
    with_ripgrep: Workbench, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    (with_ripgrep.outside / "src").mkdir()
    (with_ripgrep.outside / "src/main.py").write_text("a needle outside\n")
    way_to, walk = beneath.way_to, tree.walk

    def way(descriptor: int | None, path: Path) -> Path:
        swap(with_ripgrep.root, with_ripgrep.outside)
        return way_to(descriptor, path)

    def walked(*arguments: Any, **more: Any) -> Any:
        yield from walk(*arguments, **more)
        swap(with_ripgrep.root, with_ripgrep.outside)

    monkeypatch.setattr(beneath, "way_to", way)
    monkeypatch.setattr(tree, "walk", walked)
    found = searching.ripgrep(with_ripgrep.context.environment["PATH"])
    job = search_jobs.Job(search_in(with_ripgrep, "."), found if program == "ripgrep" else None)
    job.run()
    texts = [match.text for match in job.matches if match.path == "src/main.py"]
    assert texts == ["def needle():"]
    assert with_ripgrep.root.is_symlink()


@pytest.mark.parametrize("tool", ["list_files", "search_files"])
async def test_a_root_that_is_another_folder_by_now_is_refused_in_words(
    project: Workbench, tool: str
) -> None:
    project.root.rename(project.root.with_name("moved"))
    project.root.mkdir()
    more = {"pattern": "needle"} if tool == "search_files" else {}
    with pytest.raises(ToolFailure, match="taken the place"):
        await project.call(tool, **more)


# --- update_plan ------------------------------------------------------------------------------


async def test_a_plan_is_an_event_and_a_summary(bench: Workbench) -> None:
    entries = [
        {"content": "look", "status": "completed", "priority": "high"},
        {"content": "do", "status": "pending"},
    ]
    outcome = await bench.call("update_plan", entries=entries)
    (event,) = outcome.events
    assert [(e.content, e.status, e.priority) for e in event.entries] == [
        ("look", "completed", "high"), ("do", "pending", "medium"),
    ]  # fmt: skip
    assert outcome.text == "The plan was updated: 1 done, 0 in progress, 1 to do."
    assert (await bench.call("update_plan", entries=[])).text == "The plan was cleared."
    assert (await bench.look("update_plan", entries=entries)).risk == "low"
    with pytest.raises(ToolFailure, match=r"entries\[0\]\.status: must be one of pending"):
        await bench.call("update_plan", entries=[{"content": "x", "status": "done"}])
