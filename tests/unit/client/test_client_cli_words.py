from pathlib import Path
from typing import Any

import pytest

from callboard.cli import faults, wording
from callboard.cli.exits import CommandError, Exit
from callboard.cli.naming import resolve, short_names
from callboard.cli.terminal import open_console
from callboard_client import ConnectionLost, RemoteError
from callboard_rpc.common import Usage

pytestmark = pytest.mark.anyio


def remote(kind: str) -> RemoteError:
    data: dict[str, Any] = {"correlationId": "cor_7"}
    return RemoteError(
        method="m", code=-1, kind=kind, message="it\x1b[2J is\nso", retryable=False, data=data
    )


@pytest.mark.parametrize(
    ("fault", "exit", "said"),
    [
        (
            CommandError("bad", exit=Exit.USAGE, hint="do this"),
            2,
            "callboard: bad\n           do this\n",
        ),
        (
            CommandError("bad", hint="do\nor do"),
            1,
            "callboard: bad\n           do\n           or do\n",
        ),
        (remote("sessionNotFound"), 2, "callboard: it is so\n"),
        (remote("storeBusy"), 1, "callboard: it is so\n"),
        (remote("internal"), 1, "callboard: it is so (reference cor_7)\n"),
        (
            ExceptionGroup("", [ExceptionGroup("", [remote("storeBusy")])]),
            1,
            "callboard: it is so\n",
        ),
        (FileNotFoundError(2, "No such file", "/x"), 1, "callboard: /x: No such file\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_a_fault_is_said_in_a_line_and_has_its_exit_code(
    fault: BaseException, exit: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert faults.report(fault) == exit
    assert capsys.readouterr().err == said


def test_a_lost_server_points_to_the_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert faults.report(ConnectionLost("the server ended with status 1")) == 1
    assert "callboard doctor" in capsys.readouterr().err


def test_an_unexpected_fault_is_one_line_with_a_reference_and_its_traceback_in_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    try:
        raise ZeroDivisionError("secret detail")
    except ZeroDivisionError as fault:
        assert faults.report(fault) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "Traceback" not in said
    reference = said.split("reference ")[1].split(")")[0]
    (kept,) = tmp_path.rglob("cli.log")
    assert reference in kept.read_text()
    assert "ZeroDivisionError: secret detail" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


def test_short_names_have_eight_characters_or_as_many_as_tell_them_apart() -> None:
    assert short_names(["ABCDEFGHIJ", "XBCDEFGHIJ"]) == ["ABCDEFGH", "XBCDEFGH"]
    assert short_names(["ABCDEFGHIJ", "ABCDEFGHIK"]) == ["ABCDEFGHIJ", "ABCDEFGHIK"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "no session was named"),
        ("  ses_ ", "no session was named"),
        ("7", "no session begins with '7'"),
        ("ses_", "no session was named"),
    ],
)
async def test_coordination_11_a_name_that_names_nothing_is_refused_in_its_own_words(
    start, given: str, message: str
) -> None:
    async with start() as client:
        with pytest.raises(CommandError, match=message) as caught:
            await resolve(client, given)
    assert caught.value.exit is Exit.USAGE


async def test_a_beginning_that_fits_one_session_names_it_with_or_without_its_prefix(start) -> None:
    async with start() as client:
        assert (await resolve(client, "3")).session_id == "ses_3"
        assert (await resolve(client, "ses_3")).session_id == "ses_3"


async def test_coordination_11_a_beginning_that_fits_several_lists_them() -> None:
    class Many:
        class sessions:
            @staticmethod
            async def list(archived: bool | None) -> Any:
                for name in ("ses_AB000000001", "ses_AB000001002"):
                    yield type("S", (), {"session_id": name})

    many: Any = Many()
    with pytest.raises(CommandError, match=r"2 sessions begin with 'ab': AB000000, AB000001"):
        await resolve(many, "ab")


def test_durations_and_usage_in_words() -> None:
    assert [wording.duration(ms) for ms in (12, 3456, 125_000)] == ["12 ms", "3.5 s", "2 min 5 s"]
    assert wording.usage(Usage(requests=1)) == ""
    spent = Usage(input_tokens=1234, output_tokens=0, cost=0.5, currency="USD", partial=True)
    assert wording.usage(spent) == "1,234 tokens in, 0 out, 0.5000 USD, not all reported"


@pytest.mark.parametrize(("columns", "width"), [("50", 50), ("", 160), ("0", 160), ("wide", 160)])
def test_without_a_terminal_lines_are_as_wide_as_the_environment_says(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert open_console().width == width
