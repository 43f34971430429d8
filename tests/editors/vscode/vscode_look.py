"""What tests of windows and of plain pages share of looking at them."""

import os
from pathlib import Path
from typing import Any

from playwright.sync_api import Frame, Page
from vscode_tools import EXTENSION, ROOT

ARTEFACTS = Path(os.environ.get("CALLBOARD_ARTEFACTS", ROOT / ".artefacts" / "vscode"))
"""Where screenshots go."""
AXE = EXTENSION / "node_modules" / "axe-core" / "axe.min.js"


def screenshot(page: Page, name: str) -> Path:
    """Keeps what is drawn as an artefact."""
    path = ARTEFACTS / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path)
    return path


def axe(frame: Frame) -> list[dict[str, Any]]:
    """What axe finds wrong in a page: the rule, what it asks for, and where it is not kept."""
    if not frame.evaluate("() => 'axe' in window"):
        frame.evaluate(AXE.read_text("utf-8"))
    found = frame.evaluate("async () => (await axe.run(document)).violations")
    return [
        {
            "rule": one["id"],
            "asks": one["help"],
            "where": [
                f"{node['html'][:200]} {node['failureSummary'][:300]}" for node in one["nodes"]
            ],
        }
        for one in found
    ]
