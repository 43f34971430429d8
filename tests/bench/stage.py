"""What the figures are measured on: the fake model, the real server and the floor, each a process."""

import contextlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from peer import HERE, Peer, start

_CONFIG = """\
[approvals.policy]
run_command = "allow"
"""


def environment(folder: Path, port: int) -> dict[str, str]:
    """For a server that keeps all of its own in `folder` and knows one model, the fake one."""
    home = folder / "home"
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "config.toml").write_text(_CONFIG)
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("CALLBOARD", "OPENAI", "ANTHROPIC"))
    }
    return {
        **kept,
        "HOME": str(home),
        "CALLBOARD_STORE": str(folder / "store.db"),
        "CALLBOARD_CONFIG_DIR": str(home / "config"),
        "CALLBOARD_MODEL": "openai/bench",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "OPENAI_API_KEY": "bench-key-of-no-worth",
    }


@contextmanager
def fake_model() -> Generator[int]:
    """The model server; its port."""
    process = start([str(HERE / "fake_model.py")])
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@contextmanager
def server(port: int, folder: Path | None = None) -> Generator[tuple[Peer, Path]]:
    """``callboard serve``, greeted but not followed, and the workspace to work in."""
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="callboard-bench-")))
        stderr = stack.enter_context((folder / "stderr.txt").open("wb"))
        process = start(["-m", "callboard", "serve"], environment(folder, port), stderr)
        peer = Peer(process, acknowledge=True)
        stack.callback(peer.close)
        try:
            peer.open()
            yield peer, workspace(folder)
        except Exception as fault:
            fault.add_note((folder / "stderr.txt").read_text(errors="replace")[-2_000:])
            raise


@contextmanager
def floor(port: int) -> Generator[tuple[Peer, Path]]:
    """The floor in the server's place."""
    with TemporaryDirectory(prefix="callboard-bench-") as name:
        peer = Peer(start([str(HERE / "floor.py"), str(port)]), acknowledge=False)
        try:
            peer.open()
            yield peer, workspace(Path(name))
        finally:
            peer.close()


def workspace(folder: Path) -> Path:
    """A small folder with the files that the fake model asks for."""
    place = folder / "workspace"
    place.mkdir(exist_ok=True)
    for number in range(64):
        (place / f"file{number}.txt").write_text(f"This is file {number}.\n" * 20)
    return place
