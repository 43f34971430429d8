"""``callboard rules`` and ``callboard approvals`` against the real server."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from cli_harness import Cli, read_until

from callboard_client import Client
from callboard_rpc.common import SessionId

HOSTILE = "a\x1b]0;owned\x07\x9b2J\u202eb"


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    harness = Cli(tmp_path)
    yield harness
    harness.close()


def meanwhile(cli: Cli, work: Callable[[Client], Awaitable[Any]]) -> Any:
    """What another client of the same store does."""

    async def begin() -> Any:
        async with Client.start(env=cli.environment) as client:
            return await work(client)

    return anyio.run(begin)


def rules_of_every_scope(cli: Cli) -> list[str]:
    """A global rule, one of the workspace, one of a session in it, one of another folder."""
    session = SessionId(cli.session())

    async def add(client: Client) -> list[str]:
        add_rule = client.approvals.add_rule
        rules = [
            await add_rule("global", "deny", "*"),
            await add_rule(
                "workspace", "allow", "write_file", workspace=cli.workspace, pattern="d/**"
            ),
            await add_rule("session", "ask", "run_command", session_id=session, pattern=HOSTILE),
            await add_rule("workspace", "allow", "edit_file", workspace=cli.home),
        ]
        return [rule.rule_id for rule in rules]

    return meanwhile(cli, add)


def test_rules_are_those_that_hold_in_a_folder_or_all(cli: Cli) -> None:
    everywhere, here, session, elsewhere = rules_of_every_scope(cli)

    def listed(*arguments: str) -> list[str]:
        return [rule["ruleId"] for rule in cli.json("rules", "list", *arguments)]

    assert listed() == [everywhere, here, session]
    assert listed("--cwd", str(cli.home)) == [everywhere, elsewhere]
    assert listed("--all") == [everywhere, here, session, elsewhere]
    shown = cli("rules", "list", "--all").out
    for part in ("every tool", "everywhere", "write_file(d/**)", str(cli.home), session):
        assert part in shown
    for char in "\x1b\x07\x9b\u202e":
        assert char not in shown
    assert "owned" not in shown


def test_a_rule_is_removed_by_the_beginning_of_its_id_and_each_error_is_its_own(cli: Cli) -> None:
    first, second, *_ = rules_of_every_scope(cli)
    for given, said in (
        ("rule_", "no rule was named"),
        ("zz", "no rule begins with 'zz'"),
        (first[:8], "4 rules begin with"),
    ):
        result = cli("rules", "remove", given)
        assert (result.code, result.out) == (2, "")
        assert said in result.err
    assert cli("rules", "remove", second).out.startswith(
        f"removed {second}: allow write_file(d/**)"
    )
    assert cli("rules", "remove", first.removeprefix("rule_")).code == 0
    assert len(cli.json("rules", "list", "--all")) == 2
    gone = cli("rules", "remove", first)
    assert (gone.code, "no rule begins with" in gone.err) == (2, True)


def test_there_being_no_rules_is_said(cli: Cli) -> None:
    cli.session()
    assert cli("rules", "list").out == "There are no rules.\n"


@pytest.fixture
def pending(cli: Cli) -> dict[str, Any]:
    """An approval that waits, asked in a run of another process whose person is away."""
    script = (
        "import anyio, sys\n"
        "from callboard_client import Client\n"
        "from callboard_rpc.server import ClientCapabilities\n"
        "async def main():\n"
        "    capabilities = ClientCapabilities(approvals=True)\n"
        "    async with Client.start(capabilities=capabilities) as client:\n"
        "        run = client.run('write a file', cwd='.', title=sys.argv[1])\n"
        "        async for item in run:\n"
        "            print(getattr(item, 'type', ''), flush=True)\n"
        "        print('outcome', (await run.result()).final_text, flush=True)\n"
        "anyio.run(main)\n"
    )
    cli.command, whole = [*cli.command[:1], "-c", script], cli.command
    process = cli.start(f"Title {HOSTILE}")
    cli.command = whole
    read_until(process, "approval_request")
    (approval,) = cli.json("approvals", "list")
    return {"approval": approval, "process": process}


def test_what_waits_is_listed_with_its_session_and_what_it_is_about(
    cli: Cli, pending: dict[str, Any]
) -> None:
    approval = pending["approval"]
    shown = cli("approvals", "list").out
    for part in (
        approval["approvalId"],
        approval["sessionId"],
        '"Title ab"',
        "Create made.txt",
        f"create {cli.workspace}/made.txt +1 -0",
        "1 Allow once",
        "Reject",
    ):
        assert part in shown
    for char in "\x1b\x07\x9b\u202e":
        assert char not in shown
    whole = cli("approvals", "show", approval["approvalId"][:20]).out
    assert "+made by a test" in whole
    assert "1 Allow once" in whole


@pytest.mark.parametrize("option", ["1", "allow_once"])
def test_an_answer_from_elsewhere_lets_the_turn_go_on(
    cli: Cli, pending: dict[str, Any], option: str
) -> None:
    named = pending["approval"]["approvalId"]
    result = cli("approvals", "answer", named[:20], option)
    assert (result.code, result.out) == (0, "allowed: Create made.txt\n")
    read_until(pending["process"], "outcome")
    assert (cli.workspace / "made.txt").exists()
    again = cli("approvals", "answer", named, option)
    assert again.code == 1
    assert f"approval {named} was allowed already by callboard approvals" in again.err
    assert cli("approvals", "list").out == "Nothing waits for an answer.\n"


def test_a_rejection_takes_its_feedback_to_the_model(cli: Cli, pending: dict[str, Any]) -> None:
    named = pending["approval"]["approvalId"]
    result = cli("approvals", "answer", named, "reject_once", "--feedback", "call it b.txt")
    assert (result.code, result.out) == (0, "rejected: Create made.txt\n")
    read_until(pending["process"], "Not allowed: call it b.txt")
    assert not (cli.workspace / "made.txt").exists()


def test_a_standing_answer_says_how_to_revoke_it(cli: Cli, pending: dict[str, Any]) -> None:
    result = cli("approvals", "answer", pending["approval"]["approvalId"], "allow_always")
    rule = result.out.split("callboard rules remove ")[1].strip()
    assert [each["ruleId"] for each in cli.json("rules", "list")] == [rule]
    assert cli("rules", "remove", rule).code == 0
    assert cli.json("rules", "list") == []


def test_an_answer_that_names_nothing_decides_nothing(cli: Cli, pending: dict[str, Any]) -> None:
    named = pending["approval"]["approvalId"]
    for arguments, said in (
        ([named, "9"], "'9' names no option"),
        ([named, "0"], "'0' names no option"),
        ([named, "allow"], "It offers: 1 allow_once; 2 allow_session"),
        (["zz", "1"], "no pending approval begins with 'zz'"),
        (["apr_" + "0" * 26, "1"], "no pending approval begins with"),
        ([named, "1", "--feedback", "x"], "--feedback goes with an option that rejects"),
    ):
        result = cli("approvals", "answer", *arguments)
        assert (result.code, result.out) == (2, "")
        assert said in result.err
    assert len(cli.json("approvals", "list")) == 1
