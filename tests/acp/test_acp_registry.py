"""The entry for the registry of ACP agents keeps the registry's rules, also those that it checks by running the agent."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from harness.acp_schema import Checker
from harness.process import PATIENCE_S

ROOT = Path(__file__).parents[2]
ENTRY = ROOT / "docs" / "acp" / "registry"
SPDX_OF_OURS = "Apache-2.0"

_TEXTS = {"type": "array", "items": {"type": "string"}}
_PACKAGE = {
    "type": "object",
    "properties": {
        "package": {"type": "string", "minLength": 1},
        "args": _TEXTS,
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["package"],
    "additionalProperties": False,
}
_URI = {"type": "string", "pattern": r"^https://[^/\s]+/\S*$"}
RULES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": r"^[a-z][a-z0-9-]*$"},
        "name": {"type": "string", "minLength": 1},
        "version": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"},
        "description": {"type": "string", "minLength": 1},
        "repository": _URI,
        "website": _URI,
        "authors": _TEXTS,
        "license": {"type": "string", "minLength": 1},
        "license_url": _URI,
        "distribution": {
            "type": "object",
            "properties": {"npx": _PACKAGE, "uvx": _PACKAGE, "binary": {"type": "object"}},
            "minProperties": 1,
            "additionalProperties": False,
        },
    },
    "required": ["id", "name", "version", "description", "license_url", "distribution"],
    "additionalProperties": False,
}
"""The registry's own schema leaves the top open; `icon` is set by its build, and has no place in an entry."""


@pytest.fixture
def entry() -> dict[str, Any]:
    return json.loads((ENTRY / "agent.json").read_text())


def test_the_fields(entry: dict[str, Any]) -> None:
    jsonschema.validate(entry, RULES)


def test_it_is_about_this_package(entry: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert entry["id"] == project["name"]
    assert entry["version"] == project["version"]
    assert entry["license"] == project["license"] == SPDX_OF_OURS
    assert entry["distribution"]["uvx"]["package"] == f"{project['name']}=={project['version']}"
    assert project["name"] in project["scripts"], "`uvx PACKAGE` runs the command of that name"


def test_the_icon() -> None:
    icon = ElementTree.parse(ENTRY / "icon.svg").getroot()
    assert icon.tag == "{http://www.w3.org/2000/svg}svg"
    assert (icon.get("width"), icon.get("height")) == ("16", "16")
    colours = {
        value
        for element in icon.iter()
        for name, value in element.attrib.items()
        if name in ("fill", "stroke")
    }
    styles = " ".join(element.get("style", "") for element in icon.iter())
    colours |= set(re.findall(r"(?:fill|stroke)\s*:\s*([^;\s]+)", styles))
    assert "currentColor" in colours
    assert colours <= {"currentColor", "none", "inherit"}


def test_the_agent_answers_in_an_empty_home_with_a_way_to_authenticate(
    entry: dict[str, Any], tmp_path: Path
) -> None:
    """The registry reads the first line of stdout, and declares no terminal to authenticate in."""
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": 1,
            "clientInfo": {"name": "ACP Registry Validator", "version": "1.0.0"},
            "clientCapabilities": {
                "terminal": True,
                "fs": {"readTextFile": True, "writeTextFile": True},
                "_meta": {"terminal_output": True, "terminal-auth": True},
            },
        },
    }
    ran = subprocess.run(
        [sys.executable, "-m", "callboard", *entry["distribution"]["uvx"]["args"]],
        input=json.dumps(asked).encode() + b"\n",
        capture_output=True,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TERM": "dumb"},
        cwd=tmp_path,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    checker = Checker()
    checker.check(asked, "client")
    first = ran.stdout.splitlines(keepends=True)[0]
    result = checker.check_line(first, "agent")["result"]
    assert result["protocolVersion"] == 1
    kinds = [method.get("type", "agent") for method in result["authMethods"]]
    assert "agent" in kinds
