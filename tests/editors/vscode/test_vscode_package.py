"""What is packed: the files, their size, and that VS Code takes it."""

import json
import os
import re
import zipfile
from pathlib import Path

import pytest
from vscode_build import packed, run_node
from vscode_tools import EXTENSION

MOST_KB = 300
FILES = {
    "[Content_Types].xml",
    "extension.vsixmanifest",
    "extension/LICENSE.txt",
    "extension/package.json",
    "extension/package.nls.json",
    "extension/readme.md",
    "extension/dist/extension.cjs",
    "extension/dist/third-party.txt",
    "extension/dist/webview/board.css",
    "extension/dist/webview/board.js",
    "extension/dist/webview/chat.css",
    "extension/dist/webview/chat.js",
    "extension/dist/webview/codicon.css",
    "extension/dist/webview/codicon.ttf",
}
"""All but pictures and the pages of the walkthrough."""


@pytest.fixture(scope="module")
def vsix(shared: Path) -> Path:
    return packed(shared)


def test_it_holds_what_runs_and_nothing_else(vsix: Path) -> None:
    with zipfile.ZipFile(vsix) as archive:
        names = set(archive.namelist())
    others = {
        name for name in names if re.fullmatch(r"extension/(media|walkthrough)/[\w.-]+", name)
    }
    assert names - others == FILES
    pages = {path.name for path in (EXTENSION / "walkthrough").glob("*.md")}
    assert {Path(name).name for name in others if "/walkthrough/" in name} >= pages


def test_it_is_small(vsix: Path) -> None:
    assert vsix.stat().st_size < MOST_KB * 1000


def test_the_same_sources_make_the_same_bytes(vsix: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.vsix"
    run_node("vsix.mjs", again)
    assert again.read_bytes() == vsix.read_bytes()


def test_it_names_no_file_of_this_machine(vsix: Path) -> None:
    with zipfile.ZipFile(vsix) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    own = [os.fsencode(EXTENSION), b"sourceMappingURL", b"node_modules/"]
    assert [(name, word) for name, data in held.items() for word in own if word in data] == []


def test_what_the_manifest_names_is_there(vsix: Path) -> None:
    with zipfile.ZipFile(vsix) as archive:
        names = set(archive.namelist())
        manifest = json.loads(archive.read("extension/package.json"))
        strings = json.loads(archive.read("extension/package.nls.json"))
    named = {manifest["main"], *_files_in(manifest["contributes"])}
    if "icon" in manifest:
        named.add(manifest["icon"])
    lacking = [name for name in named if f"extension/{name.removeprefix('./')}" not in names]
    assert lacking == []
    wanted = set(re.findall(r'"%([^"%]+)%"', json.dumps(manifest)))
    assert wanted - strings.keys() == set()
    assert strings.keys() - wanted == set(), "strings that nothing uses"


def _files_in(part: object) -> set[str]:
    """Paths that contributions name."""
    if isinstance(part, dict):
        return set().union(*map(_files_in, part.values()))
    if isinstance(part, list):
        return set().union(*map(_files_in, part))
    if isinstance(part, str) and re.fullmatch(r"(media|walkthrough)/\S+\.\w+", part):
        return {part}
    return set()


def test_every_library_that_is_packed_is_named_with_its_licence(vsix: Path) -> None:
    with zipfile.ZipFile(vsix) as archive:
        told = archive.read("extension/dist/third-party.txt").decode()
    for library in ("vscode-jsonrpc", "preact", "markdown-it", "dompurify", "@vscode/codicons"):
        assert re.search(rf"^{re.escape(library)} \d", told, re.MULTILINE), library
    assert "Permission is hereby granted, free of charge" in told
