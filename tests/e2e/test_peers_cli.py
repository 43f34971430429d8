"""``callboard peer``: what a person does with links from a terminal, beside the editors that have the sessions open."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cli_harness import Cli, interrupt, read_until

from harness.process import ServerProcess

SCENE = """
default:
  - say: "Heard."
"""
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\r\x9b1m"


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path)
    cli.environment["CALLBOARD_FEATURES"] = "peers"
    (tmp_path / "scenario.yaml").write_text(SCENE)
    yield cli
    cli.close()


@pytest.fixture
def server(cli: Cli, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server on the store of the commands, as an editor starts it."""
    environ = {"CALLBOARD_STORE": cli.environment["CALLBOARD_STORE"], "CALLBOARD_FEATURES": "peers"}
    with ExitStack() as stack:
        yield stack.enter_context(
            ServerProcess(tmp_path, model=cli.environment["CALLBOARD_MODEL"], environ=environ)
        )


@pytest.fixture
def two(cli: Cli, server: ServerProcess) -> tuple[str, str]:
    return server.create(cli.workspace, title="one"), server.create(cli.workspace, title="two")


def _link(cli: Cli, one: str, two: str) -> None:
    token = cli("peer", "invite", one).out
    assert cli("peer", "accept", two, "-", stdin=token).code == 0


def test_peers_a_link_is_made_used_and_left_from_a_terminal(
    cli: Cli, server: ServerProcess, two: tuple[str, str]
) -> None:
    one, other = two
    invited = cli("peer", "invite", one)
    assert invited.code == 0
    token = invited.out.strip()
    assert len(token) >= 40
    assert token not in invited.err
    assert "peer accept" in invited.err
    accepted = cli("peer", "accept", other.removeprefix("ses_"), stdin=invited.out)
    assert (accepted.code, accepted.out, accepted.err) == (0, f"linked to {one} one\n", "")
    listed = cli("peer", "list", one)
    assert listed.out.startswith(f"{other} two · since ")
    sent = cli("peer", "send", one, other[:-2], "hello there")
    assert sent.code == 0
    assert sent.out.endswith("sent; 49 more within the hour\n")
    again = cli("peer", "send", one, other, "hello there")
    assert "it is sent once" in again.out
    # the editor that has it open wakes it; the command, which goes, does not
    server.call("event/subscribe", scope={"kind": "session", "id": other}, **{"from": "start"})
    server.told(lambda e: e["type"] == "turn_finished")
    for session, shown in ((other, f"⇄ one ({one}): hello there\n"), (one, "hello there\n")):
        tail = cli.start("tail", session)
        seen = read_until(tail, shown)
        assert "external-context" not in seen
        assert f"⇄ linked to session {one if session == other else other}\n" in seen
        interrupt(tail)
        tail.communicate(timeout=60)
    exported = cli("sessions", "export", other, "--format", "markdown").out
    assert "## one (peer)" in exported
    assert "hello there" in exported
    assert f"Linked to the session {one}" in exported
    left = cli("peer", "leave", other, one)
    assert (left.code, left.out) == (0, "left\n")
    assert "not linked" in cli("peer", "leave", other, one).out
    assert cli("peer", "list", one).out == ""


def test_peers_json_is_what_the_methods_tell(cli: Cli, two: tuple[str, str]) -> None:
    one, other = two
    (invited,) = cli.json("peer", "invite", one)
    assert set(invited) == {"token", "expiresAt"}
    (peer,) = cli.json("peer", "accept", other, invited["token"])
    assert (peer["sessionId"], peer["title"], peer["oneWay"]) == (one, "one", False)
    (sent,) = cli.json("peer", "send", one, other, "hello")
    assert (sent["repeated"], sent["left"]) == (False, 49)
    (peer,) = cli.json("peer", "list", one)
    assert peer["sessionId"] == other
    (left,) = cli.json("peer", "leave", one, other)
    assert left["left"] is True
    assert cli.json("peer", "list", one) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("accept", "ONE", "no-such-token"), "not valid, was used, or is too old"),
        (("accept", "ONE", ""), "no token was given"),
        (("send", "ONE", "two", "hello"), "is not linked to 'two'"),
        (("send", "ONE", "TWO", "hello"), "is not linked to"),
        (("send", "ONE", "ONE", "hello"), "is this session itself"),
        (("send", "nosuch", "TWO", "hello"), "no session begins with 'nosuch'"),
        (("list", ""), "no session was named"),
        (("send", "ONE"), "needs TO"),
        (("revoke", "ONE"), "there is no command"),
    ],
)
def test_peers_bad_input_is_one_clear_line_and_exit_2(
    cli: Cli, two: tuple[str, str], arguments: tuple[str, ...], said: str
) -> None:
    names = {"ONE": two[0], "TWO": two[1]}
    result = cli("peer", *(names.get(each, each) for each in arguments))
    assert result.code == 2
    assert said in result.err
    assert result.out == ""
    assert "Traceback" not in result.err


def test_peers_switched_off_the_command_says_how_to_switch_it_on(
    cli: Cli, two: tuple[str, str]
) -> None:
    cli.environment["CALLBOARD_FEATURES"] = ""
    result = cli("peer", "invite", two[0])
    assert result.code == 2
    assert "CALLBOARD_FEATURES=peers" in result.err


def test_peers_what_another_session_says_cannot_touch_the_terminal(
    cli: Cli, server: ServerProcess, two: tuple[str, str]
) -> None:
    one, other = two
    server.call("session/update", sessionId=one, title=HOSTILE)
    _link(cli, one, other)
    cli("peer", "send", one, other, f"before {HOSTILE} behind")
    server.call("event/subscribe", scope={"kind": "session", "id": other}, **{"from": "start"})
    server.told(lambda e: e["type"] == "turn_finished")
    for arguments in (
        ("peer", "list", other),
        ("sessions", "export", other, "--format", "markdown"),
    ):
        shown = cli(*arguments).out
        assert shown
        if arguments[0] == "peer":
            assert not any(c in shown for c in "\x1b\x07\x9b\u202e\r")
