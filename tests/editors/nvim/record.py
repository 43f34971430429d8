"""Records the stores that the specs of the Neovim plugin replay: `python tests/editors/nvim/record.py [NAME ...]`.

Each is made by a real server: the demos, and the scenes of `scenes.py`. They are written to
editors/nvim/tests/fixtures.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

import scenes
from recording import taken, write

from harness.process import ServerProcess

DEMOS = ("demo", "demo-agents", "demo-group")


def demo(name: str, folder: Path) -> None:
    """Plays a demo on a store of its own, and reads what it left."""
    store = folder / "store.db"
    environ = {k: v for k, v in os.environ.items() if not k.startswith("CALLBOARD")}
    environ.update(HOME=str(folder), TMPDIR=str(folder))
    shown = subprocess.run(
        [sys.executable, "-m", "callboard", name, "--store", str(store)],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout
    stage = re.search(r"^folder\s+(\S+)", shown, re.MULTILINE)
    with ServerProcess(folder) as server:
        events, said = taken(server)
    cwd = min((one["session"]["cwd"] for one in said["sessions"]), key=len)
    cwd = stage.group(1) if stage else cwd
    write(name, events, said, {cwd: "/project", str(folder): "/tmp/recorded"})


def main() -> None:
    names = sys.argv[1:] or [*DEMOS, *scenes.SCENES]
    for name in names:
        with tempfile.TemporaryDirectory(prefix="callboard-record-") as made:
            folder = Path(made).resolve()
            if name in DEMOS:
                demo(name, folder)
            else:
                scenes.SCENES[name](folder)
        print(f"recorded {name}")


if __name__ == "__main__":
    main()
