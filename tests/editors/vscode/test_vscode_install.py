"""Installing the extension as a person does it."""

import json
import subprocess
import sys
from pathlib import Path

from vscode_build import node_environ, packed
from vscode_tools import EXTENSION, WORKBENCH, node


def test_callboard_installs_it_into_a_real_vs_code(shared: Path, tmp_path: Path) -> None:
    code = tmp_path / "bin" / "code-server"
    code.parent.mkdir()
    code.write_text(
        f'#!/bin/sh\nexec "{node()}" "{WORKBENCH}" --accept-server-license-terms'
        f' --server-data-dir "{tmp_path}/data" --extensions-dir "{tmp_path}/extensions" "$@"\n',
        "utf-8",
    )
    code.chmod(0o755)
    checkout = tmp_path / "checkout"
    package = checkout / "editors" / "vscode" / "dist" / "callboard.vsix"
    package.parent.mkdir(parents=True)
    package.symlink_to(packed(shared))
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import callboard.cli.editor as editor, callboard.cli as cli;"
            f"editor.__file__ = {str(checkout / 'server/callboard/cli/editor.py')!r};"
            "raise SystemExit(cli.main(['editor', 'install', 'vscode']))",
        ],
        env={**node_environ(tmp_path), "PATH": f"{code.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    version = json.loads((EXTENSION / "package.json").read_text("utf-8"))["version"]
    assert (tmp_path / "extensions" / f"callboard.callboard-{version}" / "dist").is_dir()
