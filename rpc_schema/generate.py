"""Writes ``rpc_schema/generated`` from the contract; with ``--check`` says whether it is current.

Run it by ``make schema``. Exit code 1: something was stale (``--check``).
"""

import argparse
import sys
from pathlib import Path

from callboard_rpc.generator.documents import documents

GENERATED = Path(__file__).parent / "generated"


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when stale")
    options = parser.parse_args()
    wanted = documents()
    if not options.check:
        write(GENERATED, wanted)
        return 0
    differing = stale(GENERATED, wanted)
    for name in differing:
        sys.stderr.write(f"rpc_schema/generated/{name} is stale: run `make schema`\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
