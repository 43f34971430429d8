"""Neovims for the tests of this folder: each test that asks for one runs in every version found."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from nvim_harness import Editor
from nvim_versions import has_busted, versions

VERSIONS = versions()

collect_ignore_glob = [
    *([] if VERSIONS else ["test_*"]),
    *([] if has_busted() else ["test_nvim_specs.py"]),
]


@pytest.fixture(params=[*VERSIONS])
def nvim_version(request: pytest.FixtureRequest) -> str:
    """A name of a Neovim; a test that asks for it runs once for each."""
    return request.param


@pytest.fixture
def nvim(nvim_version: str) -> Path:
    """The program of that Neovim."""
    return VERSIONS[nvim_version]


@pytest.fixture
def open_editor(nvim: Path, tmp_path: Path) -> Generator[Callable[..., Editor]]:
    """Starts editors (see `Editor` for what it takes); at the end each is closed, and must leave nothing.

    They get folders `editor1`, `editor2`, ... of the test's own; two on one store are given the `store`
    of the first.
    """
    with ExitStack() as opened:
        count = 0

        def start(**settings: Any) -> Editor:
            nonlocal count
            count += 1
            folder = settings.pop("folder", tmp_path / f"editor{count}")
            return opened.enter_context(Editor(nvim, folder, **settings))

        yield start
