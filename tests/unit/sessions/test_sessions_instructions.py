"""AGENTS.md: order, bounds, containment (PROTOCOL 7, DESIGN 8)."""

from pathlib import Path

import pytest

from callboard.sessions.instructions import MAX_FILE_BYTES, MAX_TOTAL_BYTES, read_instructions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "a" / "b").mkdir(parents=True)
    return folder


def put(folder: Path, text: str | bytes) -> None:
    data = text.encode() if isinstance(text, str) else text
    (folder / "AGENTS.md").write_bytes(data)


def test_protocol_7_files_come_from_the_root_down_to_the_folder(root: Path) -> None:
    put(root, "top")
    put(root / "a" / "b", "deep")
    put(root.parent, "above")
    assert [f.text for f in read_instructions(root, root / "a" / "b")] == ["top", "deep"]
    assert [f.relative for f in read_instructions(root, root / "a" / "b")] == [
        "AGENTS.md",
        "a/b/AGENTS.md",
    ]
    assert [f.text for f in read_instructions(root, root / "a")] == ["top"]
    assert [f.text for f in read_instructions(root)] == ["top"]
    rendered = read_instructions(root, root / "a" / "b").render()
    assert rendered.index("top") < rendered.index("a/b/AGENTS.md") < rendered.index("deep")


def test_without_files_there_is_nothing_to_say(root: Path) -> None:
    put(root, "  \n")
    found = read_instructions(root, root / "missing" / "folder")
    assert (found.files, found.warnings, found.render()) == ((), (), "")


@pytest.mark.parametrize("outside", ["..", "/"])
def test_a_folder_outside_of_the_workspace_counts_as_the_root(root: Path, outside: str) -> None:
    put(root.parent, "above")
    put(root, "top")
    assert [f.text for f in read_instructions(root, root / outside)] == ["top"]


def test_design_8_links_that_lead_outside_are_not_followed(root: Path) -> None:
    (root.parent / "secret").write_text("topsecret", "utf-8")
    (root / "AGENTS.md").symlink_to(root.parent / "secret")
    (root / "a" / "AGENTS.md").symlink_to("real.md")
    (root / "a" / "real.md").write_text("inside", "utf-8")
    (root / "a" / "b" / "AGENTS.md").symlink_to("AGENTS.md")
    found = read_instructions(root, root / "a" / "b")
    assert [f.text for f in found] == ["inside"]
    assert len(found.warnings) == 2
    assert "outside of the workspace" in found.warnings[0]
    outer = root / "a" / "out"
    outer.symlink_to(root.parent)
    put(root.parent, "above")
    assert [f.text for f in read_instructions(root, outer)] == []


def test_text_that_is_not_utf8_is_left_out_and_told(root: Path) -> None:
    put(root, b"caf\xe9 caf\xe9")
    put(root / "a", "fine\x00")
    found = read_instructions(root, root / "a")
    assert [f.text for f in found] == ["fine\N{REPLACEMENT CHARACTER}"]
    assert "is not UTF-8" in found.warnings[0]


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_a_long_file_is_cut_between_characters(root: Path, shift: int) -> None:
    put(root, "x" * shift + "\N{SNOWMAN}" * MAX_FILE_BYTES)
    (file,) = read_instructions(root)
    assert file.truncated
    assert MAX_FILE_BYTES - 3 < len(file.text.encode()) <= MAX_FILE_BYTES
    assert set(file.text.lstrip("x")) == {"\N{SNOWMAN}"}
    assert "left out" in read_instructions(root).render()


def test_when_it_is_too_much_the_files_nearest_to_the_folder_are_kept(root: Path) -> None:
    folder = root
    for depth in range(6):
        put(folder, str(depth) * MAX_FILE_BYTES)
        folder = folder / "d"
        folder.mkdir()
    found = read_instructions(root, folder)
    assert sum(len(f.text) for f in found) <= MAX_TOTAL_BYTES
    assert [f.text[0] for f in found] == ["3", "4", "5"]
    assert len(found.warnings) == 3


def test_a_folder_or_a_fifo_of_that_name_is_no_instruction(root: Path) -> None:
    (root / "AGENTS.md").mkdir()
    assert "not a file" in read_instructions(root).warnings[0]
