"""The editor's files: tools see what its buffers hold, and write through it, where it says that they can."""

from pathlib import Path
from typing import Any

import pytest
from acp_scenes import scenes, workspace

from harness.acp import EVERYTHING, AcpProcess, allow


def able(*, read: bool, write: bool) -> dict[str, Any]:
    return {**EVERYTHING, "fs": {"readTextFile": read, "writeTextFile": write}}


class Buffers:
    """What an editor has open, and what it was asked to write."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.written: dict[str, str] = {}

    def read(self, params: dict[str, Any]) -> Any:
        name = Path(params["path"]).stem
        return {"content": self.texts[name]} if name in self.texts else FileNotFoundError(name)

    def write(self, params: dict[str, Any]) -> Any:
        self.written[params["path"]] = params["content"]
        Path(params["path"]).write_text(params["content"])
        return {}

    @property
    def answers(self) -> dict[str, Any]:
        return {"fs/read_text_file": self.read, "fs/write_text_file": self.write}


def agent(folder: Path, buffers: Buffers, *, read: bool = True, write: bool = True) -> AcpProcess:
    return AcpProcess(
        folder,
        model=scenes(folder),
        permit=allow,
        answers=buffers.answers,
        capabilities=able(read=read, write=write),
    )


def test_a_tool_reads_the_buffer_and_writes_through_the_editor(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    buffers = Buffers(old="zero\none\ntwo\n")
    with agent(tmp_path, buffers) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "look") == "end_turn"
        (read,) = [u for u in editor.updates() if u.get("status") == "completed"]
        assert "one\ntwo" in read["content"][0]["content"]["text"]
        assert "three" not in read["content"][0]["content"]["text"]
        assert editor.prompt(session, "change it") == "end_turn"
        assert buffers.written == {str(folder / "old.txt"): "zero\none\nTWO\n"}
        asked = editor.asked("fs/read_text_file")[0]["params"]
        assert asked["sessionId"] == session and asked["path"] == str(folder / "old.txt")


@pytest.mark.parametrize(
    ("saved", "changed"),
    [
        ("one\ntwo\nthree\n", "one\nTWO\nthree\n"),
        ("one\r\ntwo\r\nthree\r\n", "one\r\nTWO\r\nthree\r\n"),
        ("one\ntwo\nthree", "one\nTWO\nthree"),
        ("one\ntwo\n", "one\nTWO\nthree\n"),
    ],
)
def test_an_editor_that_joins_lines_costs_a_file_no_line_end(
    tmp_path: Path, saved: str, changed: str
) -> None:
    """avante.nvim tells the lines of a buffer, saved or not, with nothing behind the last."""
    folder = workspace(tmp_path)
    (folder / "old.txt").write_bytes(saved.encode())
    buffers = Buffers(old="one\ntwo\nthree")
    with agent(tmp_path, buffers) as editor:
        assert editor.prompt(editor.new(folder), "change it") == "end_turn"
        assert buffers.written == {str(folder / "old.txt"): changed}


def test_what_only_the_disk_has_is_read_from_there(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    buffers = Buffers()
    with agent(tmp_path, buffers) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "change it") == "end_turn"
        assert buffers.written == {str(folder / "old.txt"): "one\nTWO\nthree\n"}
        assert editor.prompt(session, "write it") == "end_turn"
        assert buffers.written[str(folder / "new.txt")] == "one\ntwo\n"


@pytest.mark.parametrize(("read", "write"), [(True, False), (False, True), (False, False)])
def test_only_what_is_declared_is_asked_for(tmp_path: Path, read: bool, write: bool) -> None:
    folder = workspace(tmp_path)
    buffers = Buffers(old="zero\none\ntwo\n")
    with agent(tmp_path, buffers, read=read, write=write) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "change it") == "end_turn"
        assert bool(editor.asked("fs/read_text_file")) is read
        assert bool(editor.asked("fs/write_text_file")) is write
        before = "zero\none\n" if read else "one\n"
        after = "" if read else "three\n"
        assert (folder / "old.txt").read_text() == before + "TWO\n" + after


def test_an_editor_is_not_asked_for_what_lies_outside(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    (folder / "old.txt").unlink()
    (tmp_path / "secret.txt").write_text("one\ntwo\n")
    (folder / "old.txt").symlink_to(tmp_path / "secret.txt")
    with agent(tmp_path, Buffers(secret="x", old="y")) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "look") == "end_turn"
        assert editor.prompt(session, "change it") == "end_turn"
        assert not editor.asked("fs/read_text_file") and not editor.asked("fs/write_text_file")
        assert (tmp_path / "secret.txt").read_text() == "one\ntwo\n"
