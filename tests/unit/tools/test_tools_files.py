"""read_file, write_file, edit_file: exact, all or nothing, and files keep what they are."""

import os
import socket
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from tools_workbench import Workbench

from callboard.tools.base import ToolFailure
from callboard_rpc.approvals import FileChangeSubject

pytestmark = pytest.mark.anyio


# --- read_file --------------------------------------------------------------------------------


async def test_a_file_is_read_as_it_is(bench: Workbench) -> None:
    bench.write("a.txt", "one\n  two\n\nthree")
    outcome = await bench.call("read_file", path="a.txt")
    assert (outcome.text, outcome.status, outcome.truncated) == ("one\n  two\n\nthree", "ok", False)
    assert outcome.locations[0].path == str(bench.root / "a.txt")


async def test_some_lines_say_how_to_go_on(bench: Workbench) -> None:
    bench.write("a.txt", "".join(f"line {n}\n" for n in range(1, 101)))
    outcome = await bench.call("read_file", path="a.txt", start_line=10, line_count=2)
    assert outcome.text == "line 10\nline 11\n[lines 10-11 of 100; go on with start_line=12]"
    last = await bench.call("read_file", path="a.txt", start_line=99)
    assert last.text == "line 99\nline 100\n[lines 99-100 of 100]"
    with pytest.raises(ToolFailure, match="has 100 lines"):
        await bench.call("read_file", path="a.txt", start_line=101)


async def test_a_long_file_is_cut_at_a_line_and_pages_join_to_the_whole(bench: Workbench) -> None:
    bench.with_context(output_limit_bytes=2000)
    whole = [f"{n:05d} ünïcode" for n in range(1000)]
    bench.write("long.txt", "\n".join(whole))
    got: list[str] = []
    start = 1
    while start <= 1000:
        outcome = await bench.call("read_file", path="long.txt", start_line=start)
        *lines, note = outcome.text.split("\n")
        assert len("\n".join(lines).encode()) <= 2000
        got += lines
        start += len(lines)
        assert f"of 1000{f'; go on with start_line={start}' if start <= 1000 else ''}]" in note
    assert got == whole


async def test_one_endless_line_is_cut_between_characters(bench: Workbench) -> None:
    bench.with_context(output_limit_bytes=1001)
    bench.write("line.txt", "é" * 5000)
    outcome = await bench.call("read_file", path="line.txt")
    assert outcome.truncated
    assert "\ufffd" not in outcome.text
    assert "too long" in outcome.text and "bytes left out" in outcome.text
    assert len(outcome.text.encode()) < 1200


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("\ufeffé\n".encode(), "é\n"),
        (b"\xff\xfe" + "é\r\nx".encode("utf-16-le"), "é\nx"),
        (b"\xfe\xff" + "é".encode("utf-16-be"), "é"),
        (b"caf\xe9\n", "café\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"", "(the file is empty)"),
    ],
)
async def test_encodings_are_recognised(bench: Workbench, data: bytes, text: str) -> None:
    bench.write("f", data)
    assert (await bench.call("read_file", path="f")).text == text


async def test_what_is_not_a_text_file_fails_in_words_and_at_once(bench: Workbench) -> None:
    os.mkfifo(bench.root / "pipe")
    (bench.root / "folder").mkdir()
    bench.write("binary", b"\x7fELF\x00\x01")
    with socket.socket(socket.AF_UNIX) as server:
        before = Path.cwd()
        os.chdir(bench.root)
        try:
            server.bind("socket")
        finally:
            os.chdir(before)
        for path, words in (
            ("pipe", "named pipe"),
            ("folder", "directory"),
            ("binary", "binary"),
            ("socket", "socket"),
            (".", "directory"),
        ):
            with pytest.raises(ToolFailure, match=words):
                await bench.call("read_file", path=path)


async def test_devices_are_no_files(bench: Workbench) -> None:
    # /dev is an additional directory here only so that its devices are within reach at all.
    from callboard.tools.workspace import FolderWorkspace

    bench.with_context(workspace=FolderWorkspace(bench.root, [Path("/dev")]))
    for device in ("/dev/zero", "/dev/null"):
        with pytest.raises(ToolFailure, match="device"):
            await bench.call("read_file", path=device)
        with pytest.raises(ToolFailure, match="device"):
            await bench.call("write_file", path=device, content="x")


async def test_a_huge_file_is_refused_without_being_read(bench: Workbench) -> None:
    with (bench.root / "huge").open("wb") as file:
        file.truncate(50 * 1024**3)
    started = time.perf_counter()
    with pytest.raises(ToolFailure, match="too large"):
        await bench.call("read_file", path="huge")
    assert time.perf_counter() - started < 1


async def test_a_missing_file_brings_names_that_are_near(bench: Workbench) -> None:
    bench.write("src/server.py", "")
    bench.write("README.md", "")
    for path, hint in (
        ("src/serve.py", "src/server.py"),
        ("src/server.js", "src/server.py"),
        ("scr/server.py", "src"),
        ("readme.md", "README.md"),
    ):
        with pytest.raises(ToolFailure, match=f"does not exist.*{hint}"):
            await bench.call("read_file", path=path)


@pytest.mark.parametrize(
    "path", ["../outside/secret.txt", "link", "link2/secret.txt", "~/x", "/etc/passwd"]
)
@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file"])
async def test_no_tool_reaches_outside_and_no_preview_asks_for_it(
    bench: Workbench, tool: str, path: str
) -> None:
    (bench.root / "link").symlink_to(bench.outside / "secret.txt")
    (bench.root / "link2").symlink_to(bench.outside)
    arguments = {
        "read_file": {},
        "write_file": {"content": "x"},
        "edit_file": {"edits": [{"old_text": "secret", "new_text": "x"}]},
    }[tool]
    with pytest.raises(ToolFailure, match=r"outside|~"):
        await bench.call(tool, path=path, **arguments)
    with pytest.raises(ToolFailure, match=r"outside|~"):
        await bench.look(tool, path=path, **arguments)
    assert (bench.outside / "secret.txt").read_text() == "secret\n"


# --- write_file -------------------------------------------------------------------------------


async def test_a_new_file_is_made_with_its_folders(bench: Workbench) -> None:
    outcome = await bench.call("write_file", path="a/b/c.txt", content="é\nx\n")
    assert (bench.root / "a/b/c.txt").read_bytes() == "é\nx\n".encode()
    (change,) = outcome.changes
    assert (change.operation, change.added, change.removed) == ("create", 2, 0)
    assert change.diff.startswith("--- /dev/null\n") and "+é\n+x\n" in change.diff
    assert [p.name for p in (bench.root / "a/b").iterdir()] == ["c.txt"]


async def test_an_overwritten_file_keeps_encoding_mark_line_ends_mode_and_owner(
    bench: Workbench,
) -> None:
    target = bench.write("f", b"\xff\xfe" + "a\r\nb\r\n".encode("utf-16-le"))
    target.chmod(0o751)
    before = target.stat()
    await bench.call("write_file", path="f", content="é\nz\n")
    assert target.read_bytes() == b"\xff\xfe" + "é\r\nz\r\n".encode("utf-16-le")
    after = target.stat()
    assert stat.S_IMODE(after.st_mode) == 0o751
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


async def test_a_private_file_is_private_at_every_moment_of_being_rewritten(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = bench.write(".env", "A=1\n")
    target.chmod(0o600)
    write, modes = os.write, list[int]()

    def seen(descriptor: int, data: Any) -> int:
        written = write(descriptor, data)
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return written

    monkeypatch.setattr("os.write", seen)
    mask = os.umask(0o022)
    try:
        await bench.call("write_file", path=".env", content="A=2\n")
        await bench.call("write_file", path="new", content="x\n")
    finally:
        os.umask(mask)
    assert target.read_text() == "A=2\n"
    assert modes == [0o600, 0o644]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


async def test_a_link_is_written_through_and_stays_a_link(bench: Workbench) -> None:
    bench.write("real.txt", "old\n")
    (bench.root / "link").symlink_to("real.txt")
    (bench.root / "dangling").symlink_to("later.txt")
    await bench.call("write_file", path="link", content="new\n")
    await bench.call("write_file", path="dangling", content="made\n")
    assert (bench.root / "link").is_symlink() and (bench.root / "dangling").is_symlink()
    assert (bench.root / "real.txt").read_text() == "new\n"
    assert (bench.root / "later.txt").read_text() == "made\n"


async def test_what_may_not_be_written_is_left_as_it_is(bench: Workbench) -> None:
    target = bench.write("ro.txt", "keep\n")
    target.chmod(0o444)
    (bench.root / "folder").mkdir()
    os.mkfifo(bench.root / "pipe")
    bench.write("latin.txt", b"caf\xe9\n")
    for path, content, words in (
        ("ro.txt", "x", "read-only"),
        ("folder", "x", "directory"),
        (".", "x", "directory"),
        ("pipe", "x", "named pipe"),
        ("ro.txt/below", "x", "Not a directory"),
        ("latin.txt", "✓", "latin-1"),
        ("ro.txt", "keep\n", "already"),
        ("n" * 300, "x", "name too long"),
    ):
        with pytest.raises(ToolFailure, match=f"(?i){words}"):
            await bench.call("write_file", path=path, content=content)
    assert target.read_text() == "keep\n"
    assert (bench.root / "latin.txt").read_bytes() == b"caf\xe9\n"
    assert not [p for p in bench.root.iterdir() if p.name.startswith(".callboard")]


async def test_a_failed_write_leaves_the_old_file_and_no_rest(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = bench.write("f.txt", "old\n")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolFailure, match="No space left"):
        await bench.call("write_file", path="f.txt", content="new\n")
    assert target.read_text() == "old\n"
    assert [p.name for p in bench.root.iterdir()] == ["f.txt"]


# --- edit_file --------------------------------------------------------------------------------


async def test_several_edits_apply_in_order_and_at_once(bench: Workbench) -> None:
    target = bench.write("a.py", "x = 1\ny = 2\nz = x\n")
    outcome = await bench.call(
        "edit_file",
        path="a.py",
        edits=[
            {"old_text": "x = 1", "new_text": "w = 1"},
            {"old_text": "w = 1\ny", "new_text": "w = 1\n\ny"},
            {"old_text": "z = x", "new_text": "z = w"},
        ],
    )
    assert target.read_text() == "w = 1\n\ny = 2\nz = w\n"
    assert outcome.status == "ok" and outcome.changes[0].operation == "modify"


async def test_one_edit_that_does_not_fit_changes_nothing(bench: Workbench) -> None:
    target = bench.write("a.py", "def f():\n    return 1\n")
    with pytest.raises(ToolFailure) as failure:
        await bench.call(
            "edit_file",
            path="a.py",
            edits=[
                {"old_text": "def f", "new_text": "def g"},
                {"old_text": "  return 2", "new_text": "  return 3"},
            ],
        )
    assert "edit 2 of 2" in str(failure.value)
    assert "2:     return 1" in str(failure.value)
    assert target.read_text() == "def f():\n    return 1\n"


async def test_wrong_white_space_is_shown(bench: Workbench) -> None:
    bench.write("a.py", "if a:\n\tb()\n\tc()\n")
    with pytest.raises(ToolFailure, match=r"Lines 2-3 differ from it in white space only"):
        await bench.call(
            "edit_file", path="a.py", edits=[{"old_text": "    b()\n    c()", "new_text": "d()"}]
        )


async def test_text_that_is_not_unique_is_refused_with_its_lines(bench: Workbench) -> None:
    target = bench.write("a.txt", "x\ny\nx\nx\n")
    with pytest.raises(ToolFailure, match=r"3 times, at lines 1, 3, 4"):
        await bench.call("edit_file", path="a.txt", edits=[{"old_text": "x", "new_text": "z"}])
    await bench.call(
        "edit_file", path="a.txt", edits=[{"old_text": "x", "new_text": "z", "replace_all": True}]
    )
    assert target.read_text() == "z\ny\nz\nz\n"
    bench.write("b.txt", "aaa")
    with pytest.raises(ToolFailure, match="2 times"):  # two places that overlap are two places
        await bench.call("edit_file", path="b.txt", edits=[{"old_text": "aa", "new_text": "b"}])


async def test_lines_that_no_edit_touches_keep_their_line_ends(bench: Workbench) -> None:
    target = bench.write("mixed.txt", b"a\r\nb\nc\r\nd\r\n")
    await bench.call(
        "edit_file", path="mixed.txt", edits=[{"old_text": "b\nc", "new_text": "B\nC\nX"}]
    )
    assert target.read_bytes() == b"a\r\nB\r\nC\r\nX\r\nd\r\n"
    marked = bench.write("bom.txt", "\ufeffone\r\ntwo\r\n".encode())
    await bench.call(
        "edit_file", path="bom.txt", edits=[{"old_text": "one\ntwo", "new_text": "1\n2"}]
    )
    assert marked.read_bytes() == "\ufeff1\r\n2\r\n".encode()
    latin = bench.write("latin.txt", b"caf\xe9 one\nna\xefve\n")
    await bench.call("edit_file", path="latin.txt", edits=[{"old_text": "one", "new_text": "été"}])
    assert latin.read_bytes() == b"caf\xe9 \xe9t\xe9\nna\xefve\n"


async def test_edits_that_change_nothing_are_refused(bench: Workbench) -> None:
    bench.write("a.txt", "x\n")
    with pytest.raises(ToolFailure, match="the same"):
        await bench.call("edit_file", path="a.txt", edits=[{"old_text": "x", "new_text": "x"}])
    with pytest.raises(ToolFailure, match=r"leave a\.txt as it is"):
        await bench.call(
            "edit_file",
            path="a.txt",
            edits=[{"old_text": "x", "new_text": "y"}, {"old_text": "y", "new_text": "x"}],
        )


async def test_an_edit_that_would_blow_a_file_up_is_refused(bench: Workbench) -> None:
    target = bench.write("a.txt", "x" * 300_000)
    edit = {"old_text": "x", "new_text": "y", "replace_all": True}
    with pytest.raises(ToolFailure, match="too many places"):
        await bench.call("edit_file", path="a.txt", edits=[edit])
    bench.write("b.txt", "x" * 1000)
    edit = {**edit, "new_text": "y" * 100_000}
    with pytest.raises(ToolFailure, match="too large"):
        await bench.call("edit_file", path="b.txt", edits=[edit])
    assert target.stat().st_size == 300_000


# --- previews ---------------------------------------------------------------------------------


async def test_a_preview_shows_exactly_the_change_that_the_run_makes(bench: Workbench) -> None:
    bench.write("a.txt", "one\ntwo\n")
    edits = [{"old_text": "two", "new_text": "2\n3"}]
    preview = await bench.look("edit_file", path="a.txt", edits=edits)
    assert (bench.root / "a.txt").read_text() == "one\ntwo\n"
    outcome = await bench.call("edit_file", path="a.txt", edits=edits)
    assert isinstance(preview.subject, FileChangeSubject)
    assert preview.subject.changes == outcome.changes
    assert preview.paths == (str(bench.root / "a.txt"),)
    with pytest.raises(ToolFailure, match="not found"):  # the file has changed since
        await bench.call("edit_file", path="a.txt", edits=edits)
    with pytest.raises(ToolFailure, match="not found"):
        await bench.look("edit_file", path="a.txt", edits=edits)


async def test_a_preview_names_the_file_that_a_link_leads_to(bench: Workbench) -> None:
    bench.write(".git/config", "x\n")
    (bench.root / "harmless.txt").symlink_to(".git/config")
    preview = await bench.look("write_file", path="harmless.txt", content="y\n")
    assert preview.paths == (str(bench.root / ".git/config"),)
    assert preview.risk == "high" and ".git/config" in preview.title


async def test_a_title_is_one_line_without_characters_that_deceive(bench: Workbench) -> None:
    name = "a\u202egpj.\nexe\x1b[31m" + "x" * 150
    preview = await bench.look("write_file", path=name, content="x")
    assert (
        "\n" not in preview.title and "\x1b" not in preview.title and "\u202e" not in preview.title
    )
    assert "\\u202e" in preview.title and len(preview.title) <= 120


async def test_a_huge_change_has_a_bounded_diff_that_says_so(bench: Workbench) -> None:
    bench.write("big.txt", "".join(f"{n} old\n" for n in range(30_000)))
    content = "".join(f"{n} new\n" for n in range(30_000))
    preview = await bench.look("write_file", path="big.txt", content=content)
    assert isinstance(preview.subject, FileChangeSubject)
    (change,) = preview.subject.changes
    assert change.truncated and len(change.diff.encode()) < 70_000
    assert (change.added, change.removed) == (30_000, 30_000)


async def test_a_small_file_is_read_within_a_millisecond(bench: Workbench) -> None:
    bench.write("small.txt", "x\n" * 500)
    times: list[float] = []
    for _ in range(50):
        started = time.perf_counter()
        await bench.call("read_file", path="small.txt")
        times.append(time.perf_counter() - started)
    assert min(times) < 0.001
