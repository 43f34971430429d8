"""Paths are judged after symlinks are resolved (DESIGN 5, 8; `specs/interrupts-and-peers.md` #74)."""

import os
import threading
from pathlib import Path

import pytest

from callboard.tools import beneath
from callboard.tools.base import PathDenied, ToolFailure
from callboard.tools.workspace import FolderWorkspace, canonical_path, fault_in, lies_within


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("work/src", "outside", "more", "work-too"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "outside/secret").write_text("secret")
    return tmp_path


def test_paths_inside_are_resolved_against_the_root(place: Path) -> None:
    workspace = FolderWorkspace(place / "work", [place / "more"])
    assert workspace.resolve("src/new.py") == place / "work/src/new.py"
    assert workspace.resolve("src/../x") == place / "work/x"
    assert workspace.resolve(".") == place / "work"
    assert workspace.resolve(str(place / "more/y")) == place / "more/y"
    assert workspace.roots == (place / "work", place / "more")


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../outside/secret",
        "src/../../outside",
        "/etc/passwd",
        "../work-too/x",
        "/",
        "a/../../b",
    ],
)
def test_paths_outside_are_denied(place: Path, path: str) -> None:
    with pytest.raises(PathDenied):
        FolderWorkspace(place / "work").resolve(path)


@pytest.mark.parametrize("path", ["", "a\x00b", "~/x", "~root/x", "~", "bad\ud800"])
def test_what_is_no_path_is_denied_with_a_reason(place: Path, path: str) -> None:
    with pytest.raises(PathDenied) as denied:
        FolderWorkspace(place / "work").resolve(path)
    assert denied.value.reason != "is outside of the workspace"
    str(denied.value).encode()  # may be stored and sent


def test_links_are_followed_before_the_judgement_also_for_files_that_do_not_exist(
    place: Path,
) -> None:
    work = place / "work"
    (work / "out").symlink_to(place / "outside")
    (work / "dangling").symlink_to(place / "outside/new")
    (work / "chain").symlink_to("out")
    (work / "inner").symlink_to("src")
    workspace = FolderWorkspace(work)
    for path in ("out/secret", "out/new/deep", "dangling", "chain/x", "out/../secret"):
        with pytest.raises(PathDenied):
            workspace.resolve(path)
    assert workspace.resolve("inner/x") == work / "src/x"


def test_a_loop_of_links_hides_no_way_out(place: Path) -> None:
    work = place / "work"
    (work / "loop").symlink_to("loop")
    (work / "out").symlink_to(place / "outside")
    with pytest.raises(PathDenied):
        FolderWorkspace(work).resolve("loop/../out/secret")


def test_a_root_that_is_itself_a_link_is_resolved_once(place: Path) -> None:
    (place / "alias").symlink_to("work")
    workspace = FolderWorkspace(place / "alias")
    assert workspace.root == place / "work"
    assert workspace.resolve(str(place / "alias/src")) == place / "work/src"


def test_a_root_must_be_a_directory(place: Path) -> None:
    with pytest.raises(NotADirectoryError):
        FolderWorkspace(place / "outside/secret")


def test_interrupts_74_spellings_of_one_windows_path_are_one() -> None:
    assert {canonical_path(p, "windows") for p in ("d:\\x", "D:/x", "D:\\x\\", "\\\\?\\d:\\x")} == {
        "D:\\x"
    }
    assert lies_within("d:/X/y", "D:\\x", "windows")
    assert not lies_within("C:\\", "D:\\x", "windows")
    assert not lies_within("D:\\xy", "D:\\x", "windows")
    assert not lies_within("D:\\x\\..\\y", "D:\\x", "windows")
    assert lies_within("D:\\x", "D:\\", "windows")


def test_interrupts_74_posix_spellings() -> None:
    assert canonical_path("//a/./b/../c/", "posix") == "/a/c"
    assert lies_within("/a/b", "/", "posix")
    assert not lies_within("/a/bc", "/a/b", "posix")
    assert not lies_within("/A/b", "/a", "posix")


@pytest.mark.parametrize("path", ["d:x", "a\\nul", "con.txt", "file.txt:stream", "x/COM1", "aux ."])
def test_windows_names_that_are_no_files_are_refused(path: str) -> None:
    assert fault_in(path, "windows") is not None
    assert fault_in("D:\\ordinary\\file.txt", "windows") is None


def test_a_link_put_into_the_way_after_the_judgement_is_not_followed(place: Path) -> None:
    work = place / "work"
    (work / "src/secret").write_text("mine")
    workspace = FolderWorkspace(work)
    path = workspace.resolve("src/secret")
    (work / "src/secret").unlink()
    (work / "src").rmdir()
    (work / "src").symlink_to(place / "outside")
    with pytest.raises(PathDenied), beneath.regular_file(workspace, path):
        pass
    with pytest.raises(PathDenied):
        beneath.replace(workspace, path, b"overwritten")
    assert (place / "outside/secret").read_text() == "secret"


def test_the_last_component_swapped_for_a_link_is_not_followed(place: Path) -> None:
    work = place / "work"
    workspace = FolderWorkspace(work)
    path = workspace.resolve("file")
    (work / "file").symlink_to(place / "outside/secret")
    with pytest.raises(PathDenied), beneath.regular_file(workspace, path):
        pass
    with pytest.raises(PathDenied):
        beneath.replace(workspace, path, b"overwritten")
    assert (place / "outside/secret").read_text() == "secret"


@pytest.mark.parametrize("by", ["link", "folder"])
def test_what_takes_the_place_of_the_root_is_not_the_workspace(place: Path, by: str) -> None:
    work = place / "work"
    (work / "secret").write_text("mine")
    workspace = FolderWorkspace(work)
    path = workspace.resolve("secret")
    work.rename(place / "moved")
    if by == "link":
        work.symlink_to(place / "outside")
    else:
        (place / "outside").rename(work)
    with pytest.raises(PathDenied, match="taken the place"), beneath.regular_file(workspace, path):
        pass
    with pytest.raises(PathDenied, match="taken the place"):
        beneath.replace(workspace, path, b"overwritten")
    for each in (work, path):
        with pytest.raises(PathDenied, match="taken the place"):
            beneath.status(workspace, each)
    assert (work / "secret").read_text() == "secret"


def test_a_swapping_adversary_never_gets_a_file_from_outside(place: Path) -> None:
    work = place / "work"
    (work / "real").mkdir()
    (work / "real/secret").write_text("mine")
    (work / "way").symlink_to("real")
    (work / "evil").symlink_to(place / "outside")
    workspace = FolderWorkspace(work)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for target in ("real", "evil"):
                (work / "next").symlink_to(target)
                (work / "next").replace(work / "way")

    thread = threading.Thread(target=swap)
    thread.start()
    seen: set[bytes] = set()
    try:
        for _ in range(300):
            try:
                path = workspace.resolve("way/secret")
                with beneath.regular_file(workspace, path) as descriptor:
                    seen.add(os.read(descriptor, 100))
            except (PathDenied, ToolFailure, OSError):
                continue
    finally:
        done.set()
        thread.join()
    assert b"secret" not in seen
