"""The files with Callboard's own keys: no tool has them, also where the workspace is the home that they lie in."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from test_tools_search import FAKE_RIPGREP
from tools_workbench import Workbench

from callboard.models.keyfile import withheld_files
from callboard.tools.base import PathDenied, ToolFailure
from callboard.tools.workspace import FolderWorkspace

pytestmark = pytest.mark.anyio

KEY = "key-that-nobody-may-see-42"


@pytest.fixture
def home(bench: Workbench) -> Workbench:
    config = bench.root / "config"
    kept, part = withheld_files(config)
    bench.write("config/keys.toml", f'openai = "{KEY}"\n')
    bench.write("config/keys.toml.new", f'openai = "{KEY}"\n')
    bench.write("config/config.toml", f"# not {KEY}\n")
    bench.write("notes.txt", f"beside {KEY}\n")
    (bench.root / "link").symlink_to(kept)
    os.link(part, bench.root / "hard")
    bench.with_context(
        workspace=FolderWorkspace(bench.root, withheld=withheld_files(config)),
        environment={"PATH": str(bench.root / "no-programs")},
    )
    return bench


@pytest.mark.parametrize("path", ["config/keys.toml", "config/keys.toml.new", "link", "hard"])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {}),
        ("write_file", {"content": "mine"}),
        ("edit_file", {"edits": [{"old_text": "openai", "new_text": "mine"}]}),
        ("search_files", {"pattern": "openai"}),
    ],
)
async def test_no_tool_has_it_by_any_name(
    home: Workbench, tool: str, arguments: dict[str, Any], path: str
) -> None:
    known = home.registry.get(tool)
    assert known is not None
    before = (home.root / "config/keys.toml").read_text()
    with pytest.raises((ToolFailure, PathDenied), match="Callboard's own"):
        await home.look(tool, path=path, **arguments)
    with pytest.raises((ToolFailure, PathDenied), match="Callboard's own"):
        await home.call(tool, path=path, **arguments)
    assert (home.root / "config/keys.toml").read_text() == before


@pytest.mark.parametrize("program", ["ripgrep", "python"])
async def test_a_search_passes_over_it(home: Workbench, tmp_path: Path, program: str) -> None:
    if program == "ripgrep":
        programs = tmp_path / "programs"
        programs.mkdir()
        (programs / "rg").write_text(f"#!{sys.executable}\n{FAKE_RIPGREP}")
        (programs / "rg").chmod(0o755)
        home.with_context(environment={"PATH": str(programs)})
    found = await home.call("search_files", pattern=KEY)
    assert sorted(line.partition(":")[0] for line in found.text.split("\n")) == [
        "config/config.toml",
        "notes.txt",
    ]
    assert KEY not in json.dumps((await home.call("search_files", pattern="openai")).text)


async def test_what_lies_beside_it_is_the_workspaces(home: Workbench) -> None:
    assert KEY in (await home.call("read_file", path="config/config.toml")).text
