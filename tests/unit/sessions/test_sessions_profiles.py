"""PROTOCOL 7: profiles, what a workspace's may say, and what happens to files that are broken."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.sessions.profile_fields import ProfileFault
from callboard.sessions.profiles import DEFAULT, ProfileBook, parse
from callboard_rpc.common import Limits
from callboard_rpc.errors import CallboardError


@pytest.fixture
def user_dir(tmp_path: Path) -> Path:
    (tmp_path / "config" / "agents").mkdir(parents=True)
    return tmp_path / "config"


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "ws" / ".callboard" / "agents").mkdir(parents=True)
    return tmp_path / "ws"


def user(folder: Path, name: str, text: str) -> Path:
    path = folder / "agents" / f"{name}.md"
    path.write_text(text, "utf-8")
    return path


def workspace(cwd: Path, name: str, text: str) -> Path:
    path = cwd / ".callboard" / "agents" / f"{name}.md"
    path.write_text(text, "utf-8")
    return path


FULL = """---
name: reviewer
description: Reads, and says what it thinks.
model: anthropic/claude
tools: [read_file, search_files]
mode: plan
limits:
  turns: 5
  tokens: 10000
  cost: 1
  timeout_ms: 60000
context:
  tools: audit
text_tool_calls: true
---
You review.

Be kind.
"""


def test_without_files_there_is_the_built_in_profile(tmp_path: Path) -> None:
    book = ProfileBook.load(tmp_path / "none", tmp_path)
    assert [p.name for p in book.infos()] == [DEFAULT]
    default = book.get(DEFAULT)
    assert default.tools is None and default.mode is None and default.source == "builtin"
    assert "coding agent" in default.prompt
    assert book.warnings == ()


def test_a_file_defines_all_fields(user_dir: Path) -> None:
    path = user(user_dir, "x", FULL.replace("\n", "\r\n"))
    book = ProfileBook.load(user_dir, None)
    profile = book.get("reviewer")
    assert profile.prompt == "You review.\n\nBe kind."
    assert profile.tools == ("read_file", "search_files")
    assert (profile.mode, profile.model) == ("plan", "anthropic/claude")
    assert profile.limits == Limits(turns=5, tokens=10000, cost=1.0, timeout_ms=60000)
    assert profile.context_tools == "audit" and profile.text_tool_calls
    info = next(i for i in book.infos() if i.name == "reviewer")
    assert (info.source, info.path, info.kind) == ("user", str(path), "builtin")


def test_a_file_without_front_matter_is_a_prompt_named_by_the_file(user_dir: Path) -> None:
    user(user_dir, "poet", "# Write poems\n\nAlways.")
    profile = ProfileBook.load(user_dir, None).get("poet")
    assert profile.description == "Write poems"
    assert profile.prompt == "# Write poems\n\nAlways."


def test_an_unknown_profile_is_an_error_that_lists_the_names(user_dir: Path) -> None:
    user(user_dir, "a", "x")
    with pytest.raises(CallboardError) as caught:
        ProfileBook.load(user_dir, None).get("nope")
    assert caught.value.kind == "profileNotFound"
    assert "'nope'" in caught.value.message
    assert "a, default" in caught.value.message


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("mode: yolo", "mode: expected one of ask, plan, work"),
        ("mode: [ask]", "mode: expected one of"),
        ("tools: 5", "tools: expected a list of names"),
        ("tools: [1, 2]", "tools: expected a list of names"),
        ("limits: 5", "limits: expected fields"),
        ("limits: {turns: 0}", "limits: turns: expected a number above 0"),
        ("limits: {turns: true}", "limits: turns: expected a number"),
        ("limits: {tunrs: 1}", "limits: tunrs: is no limit"),
        ("text_tool_calls: maybe", "text_tool_calls: expected true or false"),
        ("context: {tools: none}", "context: expected one of replay, audit"),
        ("name: 'a b'", "name: expected up to 64 letters"),
        ("name: ../evil", "name: expected up to 64 letters"),
        ("description: [x]", "description: expected text"),
        ("colour: red", "colour: is no field"),
        ("kind: acp", "command: an agent of kind acp needs"),
        ("command: [x]", "command: only an agent of kind acp"),
        ('kind: acp\ncommand: "\'"', "command: is no command line"),
        ("kind: acp\ncommand: [1]", "command: expected a program"),
        ("a: b: c", "not YAML in line 2"),
        ("- a\n- b", "must be fields"),
        ("x: !!python/object:os.system", "not YAML in line 2"),
        ("a: &a [*a]", "a: is no field"),
    ],
)
def test_a_broken_file_is_listed_with_its_field_and_hides_nothing(
    user_dir: Path, front: str, expected: str
) -> None:
    path = user(user_dir, "broken", f"---\n{front}\n---\nprompt")
    user(user_dir, "fine", "prompt")
    book = ProfileBook.load(user_dir, None)
    assert [i.name for i in book.infos()] == ["default", "broken", "fine"]
    info = next(i for i in book.infos() if i.name == "broken")
    assert expected in info.description and info.path == str(path)
    with pytest.raises(CallboardError, match="cannot be used") as caught:
        book.get("broken")
    assert str(path) in caught.value.message and expected in caught.value.message
    assert book.get("fine").prompt == "prompt"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xff\xfe", "is not UTF-8"),
        (b"x" * (256 * 1024 + 1), "is larger than"),
        (b"---\nname: a\nno end", "has no end"),
    ],
)
def test_a_file_that_cannot_be_read_is_listed(
    user_dir: Path, content: bytes, expected: str
) -> None:
    (user_dir / "agents" / "bad.md").write_bytes(content)
    (user_dir / "agents" / "folder.md").mkdir()
    descriptions = {i.name: i.description for i in ProfileBook.load(user_dir, None).infos()}
    assert expected in descriptions["bad"]
    assert "is not a file" in descriptions["folder"]


def test_two_files_of_one_name_keep_the_first_and_say_so(user_dir: Path) -> None:
    user(user_dir, "a", "---\nname: same\n---\nfirst")
    user(user_dir, "b", "---\nname: same\n---\nsecond")
    book = ProfileBook.load(user_dir, None)
    assert book.get("same").prompt == "first"
    assert "already defines 'same'" in book.warnings[0]


def test_the_users_own_default_replaces_the_built_in_one(user_dir: Path) -> None:
    user(user_dir, "default", "Mine.")
    assert ProfileBook.load(user_dir, None).get(DEFAULT).prompt == "Mine."


def test_an_acp_agent_is_the_users_to_define(user_dir: Path) -> None:
    user(user_dir, "other", "---\nkind: acp\ncommand: agent --flag 'a b'\n---\n")
    profile = ProfileBook.load(user_dir, None).get("other")
    assert (profile.kind, profile.command) == ("acp", ("agent", "--flag", "a b"))


# --- the workspace ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("kind: acp\ncommand: [evil]", "command: a workspace may not name commands"),
        ("kind: acp", "kind: a workspace may not define"),
        ("command: evil", "command: a workspace may not name commands"),
        ("env: {A: b}", "env: a workspace may not name commands"),
    ],
)
def test_protocol_7_a_workspace_never_names_a_command(
    user_dir: Path, cwd: Path, front: str, expected: str
) -> None:
    workspace(cwd, "evil", f"---\n{front}\n---\nx")
    book = ProfileBook.load(user_dir, cwd)
    info = next(i for i in book.infos() if i.name == "evil")
    assert expected in info.description
    assert info.source == "workspace"


def test_protocol_7_a_workspaces_profile_narrows_the_users_of_that_name(
    user_dir: Path, cwd: Path
) -> None:
    user(user_dir, "reviewer", FULL)
    workspace(
        cwd,
        "reviewer",
        "---\nmode: work\ntools: [read_file, run_command]\nlimits: {turns: 50, tokens: 10}\n---\nTheirs.",
    )
    profile = ProfileBook.load(user_dir, cwd).get("reviewer")
    assert profile.prompt == "Theirs."
    assert profile.tools == ("read_file",)
    assert profile.mode == "plan"
    assert profile.limits == Limits(turns=5, tokens=10, cost=1.0, timeout_ms=60000)
    assert profile.source == "workspace"


def test_protocol_7_a_workspaces_own_profile_is_held_to_the_users_default(
    user_dir: Path, cwd: Path
) -> None:
    user(user_dir, "default", "---\ntools: [read_file, list_files]\nmode: ask\n---\nMine.")
    workspace(cwd, "new", "---\nmode: work\ntools: [run_command, read_file]\n---\nTheirs.")
    profile = ProfileBook.load(user_dir, cwd).get("new")
    assert (profile.tools, profile.mode) == (("read_file",), "ask")


def test_protocol_7_a_workspace_cannot_raise_the_mode_above_the_configured_one(
    user_dir: Path, cwd: Path
) -> None:
    workspace(cwd, "new", "---\nmode: work\n---\nTheirs.")
    workspace(cwd, "calm", "---\nmode: plan\n---\nTheirs.")
    book = ProfileBook.load(user_dir, cwd)
    assert book.get("new").mode is None
    assert book.get("calm").mode == "plan"


def test_a_broken_file_of_the_workspace_does_not_take_the_users_agent_away(
    user_dir: Path, cwd: Path
) -> None:
    user(user_dir, "mine", "Mine.")
    workspace(cwd, "mine", "---\nmode: yolo\n---\n")
    workspace(cwd, "default", "---\ncommand: evil\n---\n")
    book = ProfileBook.load(user_dir, cwd)
    assert book.get("mine").prompt == "Mine."
    assert book.get(DEFAULT).source == "builtin"
    assert len(book.warnings) == 2


def test_a_workspace_does_not_change_the_users_acp_agent(user_dir: Path, cwd: Path) -> None:
    user(user_dir, "other", "---\nkind: acp\ncommand: agent\n---\n")
    workspace(cwd, "other", "Theirs.")
    book = ProfileBook.load(user_dir, cwd)
    assert book.get("other").command == ("agent",)
    assert "may not change" in book.warnings[0]


def test_a_workspaces_file_that_leads_outside_is_not_read(
    user_dir: Path, cwd: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("topsecret", "utf-8")
    (cwd / ".callboard" / "agents" / "leak.md").symlink_to(tmp_path / "secret")
    info = next(i for i in ProfileBook.load(user_dir, cwd).infos() if i.name == "leak")
    assert "outside of the workspace" in info.description


@given(st.text(max_size=200))
def test_any_text_is_a_profile_or_a_named_fault(text: str) -> None:
    for source in ("user", "workspace"):
        for whole in (text, f"---\n{text}\n---\n"):
            try:
                profile = parse(whole, "x", source)  # type: ignore[arg-type]
            except ProfileFault as fault:
                assert str(fault)
            else:
                assert profile.source == source
                assert source == "user" or not profile.command
