"""Rules of the house that no linter knows, over every tracked file.

No package registry's host, no path or name of the machine it was written on, no dates in prose
(history belongs to git), and the documents that a reader expects.
"""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE")

REGISTRY = re.compile(
    r"\b(?:pypi|pythonhosted|npmjs|yarnpkg)\.(?:org|com|io)\b"
    r"|\b(?:deb|security|ftp)\.(?:debian|ubuntu)\.(?:org|com)\b"
)
MACHINE = re.compile(
    r"/work/(?:main|shared|\.library)\b|/(?:root|home/\w+)/\.(?:pyenv|cache|local)\b"
)
DATE = re.compile(r"\b20\d\d-[01]\d-[0-3]\d\b")
PROSE = {".md", ".toml", ".cfg"}


def here() -> list[str]:
    """Names that only this machine has; short ones could be anybody's words."""
    return [name for name in (socket.gethostname(), str(ROOT)) if len(name) > 8]


def faults(name: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if REGISTRY.search(line):
            yield f"{name}:{number}: names the host of a package registry"
        if MACHINE.search(line) or any(own in line for own in here()):
            yield f"{name}:{number}: names a path or the name of a machine"
        if Path(name).suffix in PROSE and DATE.search(line):
            yield f"{name}:{number}: has a date"


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    return [name for name in listed.stdout.split("\0") if name]


def main() -> int:
    found = [f"{name} is missing or empty" for name in DOCUMENTS if not _text(name).strip()]
    for name in tracked():
        found.extend(faults(name, _text(name)))
    for fault in found:
        sys.stderr.write(fault + "\n")
    return 1 if found else 0


def _text(name: str) -> str:
    path = ROOT / name
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
