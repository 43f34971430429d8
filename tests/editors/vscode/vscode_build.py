"""What the tests build of the extension, once for all their processes: bundles and packages."""

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from vscode_tools import EXTENSION, WORKBENCH, node

from harness.foreign_tests import run_foreign


def node_environ(home: Path) -> dict[str, str]:
    """All of the environment of a program for Node."""
    program = node()
    assert program is not None
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}


def run_node(*arguments: str | Path, home: Path | None = None, timeout: float = 100) -> str:
    """What a program for Node wrote, run in the extension's folder. Fails with all of it when it does not end well."""
    program = node()
    assert program is not None
    run = run_foreign(
        [program, *arguments],
        folder=EXTENSION,
        environ=node_environ(home or Path(tempfile.gettempdir())),
        timeout_s=timeout,
    )
    assert run.code == 0, f"node {' '.join(map(str, arguments))}\n{run.said}"
    return run.said


def once(shared: Path, name: str, build: Callable[[Path], None]) -> Path:
    """What `build` makes at ``shared/name``; the first of the processes that test beside each other makes it."""
    made = shared / name
    shared.mkdir(parents=True, exist_ok=True)
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            part = shared / f"part-{name}"
            build(part)
            part.rename(made)
    return made


def packed(shared: Path) -> Path:
    """The extension's .vsix."""
    return once(shared, "callboard.vsix", lambda path: _said_nothing(run_node("vsix.mjs", path)))


def units(shared: Path) -> Path:
    """A folder with the bundles of all unit tests."""
    return once(
        shared, "units", lambda path: _said_nothing(run_node("test/bundle.mjs", "unit", path))
    )


def suites(shared: Path) -> Path:
    """A folder with the bundles of the suites that run in an extension host."""
    return once(
        shared, "suites", lambda path: _said_nothing(run_node("test/bundle.mjs", "exthost", path))
    )


def pages(shared: Path, origin: str) -> Path:
    """A folder with the pages of the webviews, as they are served from `origin`."""
    made = once(
        shared,
        "pages",
        lambda path: _said_nothing(run_node("test/webview/pages.mjs", path, origin)),
    )
    return made / "webview"


def driver(shared: Path) -> Path:
    """The .vsix of the extension that runs those suites."""
    return once(
        shared, "driver.vsix", lambda path: _said_nothing(run_node("test/exthost/pack.mjs", path))
    )


def installed(shared: Path, *, driven: bool = False) -> Path:
    """An extensions folder of VS Code with the extension in it, and with the driver when `driven`; to be
    copied."""
    packages = [packed(shared), *([driver(shared)] if driven else [])]

    def build(folder: Path) -> None:
        run_node(
            WORKBENCH,
            "--accept-server-license-terms",
            *("--server-data-dir", shared / "installing"),
            *("--extensions-dir", folder),
            *(word for package in packages for word in ("--install-extension", package)),
        )

    return once(shared, "driven-extensions" if driven else "extensions", build)


def _said_nothing(_said: str) -> None:
    """What a build says is of interest only when it fails."""
