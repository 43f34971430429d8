"""What the tests of the tools share."""

from pathlib import Path

import pytest
from tools_workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    root, outside = tmp_path / "work", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("secret\n")
    return Workbench(root, outside)
