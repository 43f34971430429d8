"""SQL lives in ``.sql`` files; each statement stands under a line ``-- name: what_it_does``."""

from collections.abc import Mapping
from importlib.resources import files

_MARK = "-- name:"


def load(package: str, name: str = "queries.sql") -> Mapping[str, str]:
    """The named statements of `package`'s SQL file. A name that is given twice is an error."""
    queries: dict[str, str] = {}
    current: str | None = None
    for line in (files(package) / name).read_text("utf-8").splitlines():
        if line.startswith(_MARK):
            current = line.removeprefix(_MARK).strip()
            if current in queries:
                raise ValueError(f"{package}/{name} names {current} twice")
            queries[current] = ""
        elif current is not None and not line.startswith("--"):
            queries[current] += line + "\n"
    return {key: text.strip().rstrip(";") for key, text in queries.items()}
