"""VS Codes for the tests of this folder; what this machine lacks the tools for is left out."""

import copy
import json
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from vscode_tools import chromium, has_browser, has_packages, has_workbench

HERE = Path(__file__).parent
PACKAGES = ["test_vscode_units.py", "test_vscode_package.py"]
"""Tests that need no browser."""
PAGES = ["test_vscode_webview*"]
"""Tests that need no workbench."""

OTHERS = [
    path.name
    for path in HERE.glob("test_*.py")
    if not any(path.match(pattern) for pattern in (*PACKAGES, *PAGES))
]

collect_ignore_glob = [
    *([] if has_packages() else PACKAGES),
    *([] if has_packages() and has_browser() else PAGES),
    *([] if has_workbench() else OTHERS),
]

if has_browser():
    from playwright.sync_api import Browser, sync_playwright
    from vscode_harness import CodeServer
    from webview_harness import ORIGIN, Webview


ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
"""Has Chromium know of no other machine."""
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all processes of this run of the tests share."""
    base = tmp_path_factory.getbasetemp()
    return (base if worker_id == "master" else base.parent) / "vscode"


@pytest.fixture(scope="module")
def browser() -> "Generator[Browser]":
    """Chromium. For one module: the thread's event loop is Playwright's as long as it lasts, and other
    tests want it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(),
            args=["--no-sandbox", "--disable-gpu", ALONE],
        )
        yield browser
        browser.close()


@pytest.fixture
def open_code(
    browser: "Browser", shared: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> "Generator[Callable[..., CodeServer]]":
    """Starts VS Codes (see `CodeServer` for what it takes); at the end each is closed, and must leave nothing.

    They get folders `code1`, `code2`, ... of the test's own. `driven` installs the extension that runs
    suites of ``test/exthost``.
    """
    from vscode_build import installed

    with ExitStack() as opened:
        started: list[CodeServer] = []

        def start(**settings: Any) -> CodeServer:
            folder = settings.pop("folder", tmp_path / f"code{len(started) + 1}")
            driven = settings.pop("driven", False)
            code = CodeServer(browser, installed(shared, driven=driven), folder, **settings)
            started.append(code)
            opened.callback(code.close)
            return code

        yield start
        if request.node.stash.get(FAILED, False):
            for code in started:
                print(code.told("as the test failed:"))


@pytest.fixture
def open_webview(
    browser: "Browser", shared: Path, request: pytest.FixtureRequest
) -> "Generator[Callable[..., Webview]]":
    """Opens pages of webviews (see `Webview` for what it takes); at the end each must have kept the rules."""
    from vscode_build import pages

    with ExitStack() as opened:

        def start(name: str, **settings: Any) -> Webview:
            page = Webview(browser, pages(shared, ORIGIN), name, test=request.node.name, **settings)
            opened.callback(page.close)
            return page

        yield start


@pytest.fixture(scope="session")
def gallery() -> dict[str, Any]:
    """One of everything that a chat can show."""
    from vscode_build import run_node

    return json.loads(run_node("test/webview/gallery.mjs"))


@pytest.fixture
def everything(gallery: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(gallery)


@pytest.fixture
def quiet(everything: dict[str, Any]) -> dict[str, Any]:
    """A session in which nothing runs, nothing waits and nothing was said."""
    del everything["plan"], everything["head"]["turn"]
    head = everything["head"] | {"agentsRunning": 0, "inGroup": False}
    lists: dict[str, Any] = {"cards": [], "queue": [], "approvals": [], "context": []}
    return everything | lists | {"head": head, "elsewhere": 0, "older": False}
