"""Makes ``docs/vscode.png`` and ``docs/vscode-board.png``: the extension in a real VS Code, as its own tests see it.

Run it with the project's own Python after ``make tools``: ``.venv/bin/python docs/vscode_picture.py``.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
TESTS = DOCS.parent / "tests" / "editors" / "vscode" / "test_vscode_e2e.py"
PICTURES = {
    "e2e-approval-light-wide.png": "vscode.png",
    "e2e-board-light-wide.png": "vscode-board.png",
}
SHOWN = "accepted or moved_by_keys"
"""The tests that see them."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", str(TESTS), "-k", SHOWN],
            env={**os.environ, "CALLBOARD_ARTEFACTS": folder},
            cwd=DOCS.parent,
            check=True,
        )
        for kept, picture in PICTURES.items():
            shutil.copyfile(Path(folder) / kept, DOCS / picture)


if __name__ == "__main__":
    main()
