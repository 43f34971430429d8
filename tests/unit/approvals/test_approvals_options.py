"""What a standing answer covers, and that the options say so (DESIGN 5, session-messaging 7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.approvals.options import command_pattern, options_for, suggest_rule
from callboard.approvals.patterns import allows_command, allows_paths, denies_command
from callboard.tools.base import Effect, Preview, Tool
from callboard_rpc.approvals import CommandSubject

ROOTS = ("/ws",)


async def never(*_: object) -> None:
    raise AssertionError


def tool(name: str, effect: Effect) -> Tool:
    return Tool(
        name=name,
        description="",
        arguments=object,
        effect=effect,
        kind="other",
        run=never,  # type: ignore[arg-type]
        preview=never,  # type: ignore[arg-type]
    )


def preview(command: str | None = None, *paths: str) -> Preview:
    subject = CommandSubject(command=command or "", cwd="/ws")
    return Preview(title="x", subject=subject, command=command, paths=paths)


RUN = tool("run_command", "execute")
WRITE = tool("write_file", "write")


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("npm test", "npm test"),
        ("npm test -- --watch a b", "npm test"),
        ("npm run build --prod", "npm run build"),
        ("pytest -q tests/x.py", "pytest"),
        ("python -m pytest -q", "python -m pytest"),
        ("uv run pytest -x", "uv run pytest"),
        ("cargo test --all 2>&1", "cargo test"),
        ("git status", "git status"),
        ("git stash list", "git stash list"),
        ("docker compose up", "=docker compose up"),
        ("rg TODO src", "rg"),
        ("ruff check .", "ruff"),
    ],
)
def test_a_command_gives_its_telling_words(command: str, pattern: str) -> None:
    assert command_pattern(command) == pattern


@pytest.mark.parametrize(
    "command",
    [
        "python x.py",
        "python3 -c 'print(1)'",
        "python -m http.server",
        "bash",
        "bash -c ls",
        "sh x.sh",
        "node x.js",
        "env A=1 ls",
        "xargs rm",
        "sudo ls",
        "rm -rf build",
        "rm x",
        "mv a b",
        "find . -name x",
        "sed -i s/a/b/ x",
        "curl https://example.org",
        "ssh host",
        "make",
        "npm",
        "npm exec x",
        "npm install x",
        "npx x",
        "uv run python x.py",
        "git -c alias.x='!sh' x",
        "git push",
        "git config core.pager x",
        "docker run x",
        "docker compose exec x sh",
        "go run x.go",
        "./script.sh a",
        "/usr/bin/npm test",
        "npm test | tail",
        "npm test && rm x",
        "npm test > out",
        "npm test $X",
        "A=1 npm test",
        "$(npm test)",
        "'a b' c",
        "npm 'run; rm' x",
        "npm 'unbalanced",
        "\\rm x",
    ],
)
def test_a_program_that_could_run_anything_gives_only_the_exact_command(command: str) -> None:
    assert command_pattern(command) == "=" + command


@given(st.sampled_from(["npm", "git", "ls", "python", "rm", "pytest"]), st.text(max_size=30))
def test_a_suggested_pattern_always_covers_the_command_it_was_made_from(
    program: str, rest: str
) -> None:
    command = f"{program} {rest}"
    pattern = command_pattern(command)
    assert allows_command([pattern], command)
    assert denies_command(pattern, command)


@pytest.mark.parametrize(
    ("paths", "pattern"),
    [
        (("/ws/src/a.py",), "/src/**"),
        (("/ws/README.md",), "/README.md"),
        (("/ws/src/a.py", "/ws/src/b.py"), "/src/**"),
        (("/ws/src/x/a.py", "/ws/src/y/b.py"), "/src/**"),
        (("/ws/a.py", "/ws/src/b.py"), "/**"),
        (("/ws/a [1]*/b!.py",), r"/a\ \[1\]\*/**"),
        (("/ws/#x",), r"/\#x"),
    ],
)
def test_changed_files_give_the_folder_they_lie_in(paths: tuple[str, ...], pattern: str) -> None:
    rule = suggest_rule(WRITE, preview(None, *paths), "workspace", ROOTS)
    assert rule.pattern == pattern
    assert allows_paths(pattern, paths, ROOTS)
    session = suggest_rule(WRITE, preview(None, *paths), "session", ROOTS)
    assert session.pattern == "**"
    assert allows_paths("**", paths, ROOTS)


def test_a_folder_pattern_does_not_reach_a_folder_of_the_same_name_deeper_down() -> None:
    assert not allows_paths("/src/**", ("/ws/lib/src/a.py",), ROOTS)


def test_the_five_options_say_what_they_will_do() -> None:
    options = options_for(RUN, preview("npm test --watch", "/ws"), ROOTS)
    assert [(o.option_id, o.kind) for o in options] == [
        (kind, kind)
        for kind in ("allow_once", "allow_session", "allow_always", "reject_once", "reject_always")
    ]
    assert [o.name for o in options] == [
        "Allow once",
        "Allow commands that start with `npm test` for this session",
        "Always allow commands that start with `npm test` in this workspace",
        "Reject",
        "Always reject commands that start with `npm test` in this workspace",
    ]
    names = [o.name for o in options_for(WRITE, preview(None, "/ws/src/a.py"), ROOTS)]
    assert names[1] == "Allow write_file on every file of the workspace for this session"
    assert names[2] == "Always allow write_file on src/** in this workspace"
    long = options_for(RUN, preview("rm " + "x" * 500), ROOTS)[2].name
    assert "exactly `rm xxx" in long and len(long) < 130


def test_no_standing_allowance_is_offered_where_none_would_hold() -> None:
    options = options_for(WRITE, preview(None, "/ws/.git/config"), ROOTS, forced=True)
    assert [o.kind for o in options] == ["allow_once", "reject_once", "reject_always"]
