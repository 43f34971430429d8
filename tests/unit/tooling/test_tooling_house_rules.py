"""`make check` finds what must not be in a tracked file."""

import importlib.util
import socket
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / ".ci" / "house_rules.py"


@pytest.fixture
def rules() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house_rules", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Written in pieces, so that this file keeps the rules that it tests.
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Makefile", "pip install -i https://" + "py" + "pi.org" + "/simple"),
        ("a.json", "https://registry." + "npm" + "js.org" + "/left"),
        ("a.py", 'ROOT = "/work' + '/main/server"'),
        ("a.py", "/home/someone" + "/.cache/x"),
        ("NOTES.md", "Done on 2024" + "-05-06"),
    ],
)
def test_what_must_not_be_tracked_is_found(rules: ModuleType, name: str, line: str) -> None:
    assert [fault.partition(": ")[0] for fault in rules.faults(name, f"fine\n{line}\n")] == [
        f"{name}:2"
    ]


def test_the_name_of_this_machine_is_found(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "somebodys-laptop")
    assert list(rules.faults("a.py", "# somebodys-laptop says hello")) != []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.py", 'AT = "2024-05-06T07:08:09Z"'),
        ("requirements.lock", "httpx==0.28.1"),
        ("a.py", "/home/me/project and /root/project"),
    ],
)
def test_what_may_be_tracked_is_left_alone(rules: ModuleType, name: str, line: str) -> None:
    assert list(rules.faults(name, line)) == []
