"""Writes ``rpc_schema/generated`` from the contract, and the copies of it that clients carry; with
``--check`` says whether they are current.

Run it by ``make schema``. Exit code 1: something was stale (``--check``).
"""

import argparse
import sys
from pathlib import Path

from callboard_rpc.generator.documents import documents

GENERATED = Path(__file__).parent / "generated"
ROOT = Path(__file__).resolve().parent.parent
COPIES = {"lua/callboard.lua": "editors/nvim/lua/callboard/protocol.lua"}
"""Documents by their path below `GENERATED`, and where in this checkout the same text stands again."""


def stale(folder: Path, wanted: dict[str, str]) -> list[str]:
    """Paths below `folder` that are missing, differ, or should not be there."""
    there = {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }
    differing = [
        name
        for name, text in wanted.items()
        if name not in there or there[name].read_bytes() != text.encode()
    ]
    return sorted({*differing, *(there.keys() - wanted.keys())})


def write(folder: Path, wanted: dict[str, str]) -> None:
    for name in stale(folder, wanted):
        path = folder / name
        if name in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted[name].encode())
        else:
            path.unlink()


def stale_copies(root: Path, wanted: dict[str, str]) -> dict[str, str]:
    """What has to be written: texts by their paths below `root`."""
    copies = {path: wanted[name] for name, path in COPIES.items()}
    return {
        path: text
        for path, text in copies.items()
        if not (root / path).is_file() or (root / path).read_bytes() != text.encode()
    }


def write_copies(root: Path, wanted: dict[str, str]) -> None:
    for path, text in stale_copies(root, wanted).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when stale")
    options = parser.parse_args()
    wanted = documents()
    if not options.check:
        write(GENERATED, wanted)
        write_copies(ROOT, wanted)
        return 0
    differing = [f"rpc_schema/generated/{name}" for name in stale(GENERATED, wanted)]
    differing += stale_copies(ROOT, wanted)
    for path in differing:
        sys.stderr.write(f"{path} is stale: run `make schema`\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
