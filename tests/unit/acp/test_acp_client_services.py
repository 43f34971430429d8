"""Files and terminals that an agent has us deal with: inside of the folders, by policy, ended with the turn."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from acp_client_kit import CLIENT, OPTIONS, command, permission, stage, tool_call, tool_update
from test_acp_client_turns import of, said

pytestmark = pytest.mark.anyio

ALLOW = '[approvals.policy]\nexecute = "allow"\nwrite = "allow"\n'


def asks(method: str, **params: Any) -> dict[str, Any]:
    return {"ask": {"method": method, "params": params}}


def read(path: Path, **more: Any) -> dict[str, Any]:
    return asks("fs/read_text_file", path=str(path), **more)


def write(path: Path, text: str) -> dict[str, Any]:
    return asks("fs/write_text_file", path=str(path), content=text)


def told(records: list[Any]) -> list[Any]:
    """What the agent was answered, as it repeats it."""
    return [json.loads(part) for part in "".join(said(records))[1:-1].split("><")]


async def test_a_file_is_read_and_lines_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthree\n", "utf-8")
    async with stage(tmp_path, read(path), read(path, line=2, limit=1)) as play:
        records = await play.turn(mode="plan")
    assert told(records) == [{"content": "one\ntwo\nthree\n"}, {"content": "two\n"}]
    assert of(records, "tool_call") == []


async def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with stage(tmp_path, read(tmp_path / "none.txt")) as play:
        (error,) = told(await play.turn())
    assert error["code"] == -32002


async def test_nothing_outside_of_the_folders_is_read_or_written(tmp_path: Path) -> None:
    folder, outside = tmp_path / "in", tmp_path / "secret.txt"
    folder.mkdir()
    outside.write_text("secret", "utf-8")
    (folder / "link.txt").symlink_to(outside)
    tries = (read(outside), read(folder / "link.txt"), write(folder / ".." / "made.txt", "x"))
    async with stage(tmp_path, *tries, config=ALLOW) as play:
        session = await play.host.sessions.create(
            cwd=str(folder), profile="puppet", mode="work", by=CLIENT
        )
        await play.say(session.session_id)
        answers = told(await play.idle(session.session_id))
    assert [error["code"] for error in answers] == [-32602] * 3
    assert all("outside of the workspace" in error["message"] for error in answers)
    assert not (tmp_path / "made.txt").exists()


async def test_a_write_is_a_call_of_its_own_that_a_person_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    async with stage(tmp_path, {"say": "."}, write(path, "new\n")) as play:
        session_id = await play.session()
        await play.say(session_id)
        approval = await play.asked()
        assert not path.exists()
        await play.answer()
        records = await play.idle(session_id)
    assert approval.tool == "write_file"
    assert path.read_text("utf-8") == "new\n"
    (call,) = of(records, "tool_call")
    assert call.name == "write_file"
    (result,) = of(records, "tool_result")
    assert result.status == "ok"
    assert result.changes[0].operation == "create"


async def test_a_write_that_is_refused_is_an_error_for_the_agent(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    async with stage(tmp_path, write(path, "new\n")) as play:
        records = await play.turn(mode="ask")
        (error,) = told(records)
    assert error["code"] == -32602
    assert "mode" in error["message"]
    assert not path.exists()


async def test_a_write_of_a_call_that_was_just_allowed_is_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    diff = [{"type": "diff", "path": str(path), "newText": "new\n"}]
    asked = permission(kind="edit", content=diff)
    actions = (asked, write(path, "new\n"), tool_update(status="completed"))
    async with stage(tmp_path, *actions) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.answer()
        records = await play.idle(session_id)
    assert path.read_text("utf-8") == "new\n"
    (call,) = of(records, "tool_call")
    assert call.kind == "edit"


WRITES = [
    # what was shown, what is in the file, what is written; whether that is what was allowed
    ([(None, "new\n")], None, "new\n", True),
    ([(None, "new\n")], None, "evil\n", False),
    ([("old\n", "new\n")], "old\n", "new\n", True),
    ([("b\n", "B\n")], "a\nb\nc\n", "a\nB\nc\n", True),
    ([("b\n", "B\n")], "a\r\nb\r\n", "a\nB\n", True),
    ([("b\n", "B\n")], "a\nb\nc\n", "a\nB\nevil\n", False),
    ([("b", "B"), ("c", "C")], "a\nb\nc\n", "a\nB\nC\n", True),
    ([("b", "B"), ("c", "C")], "a\nb\nc\n", "a\nB\nc\n", False),
    ([("b", "B")], "b b\n", "B B\n", True),
    ([("x", "X")], "a\nb\n", "X", False),
    # made everywhere it would fill the memory of any machine
    ([("a", "b" * 2**20)], "a" * 2**20, "evil\n", False),
]


@pytest.mark.parametrize(("shown", "before", "after", "fits"), WRITES)
async def test_what_was_allowed_is_what_was_shown(
    tmp_path: Path, shown: list[Any], before: str | None, after: str, fits: bool
) -> None:
    path = tmp_path / "a.txt"
    if before is not None:
        path.write_bytes(before.encode())
    diffs = [
        {"type": "diff", "path": str(path), "newText": new, **({"oldText": old} if old else {})}
        for old, new in shown
    ]
    async with stage(tmp_path, permission(kind="edit", content=diffs), write(path, after)) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.answer()
        if not fits:
            await play.seen(session_id, "approval_request", 2)
            await play.answer("reject_once")
        records = await play.idle(session_id)
    assert len(of(records, "approval_request")) == (1 if fits else 2)
    now = path.read_bytes().decode() if path.exists() else None
    assert (now is not None and now.replace("\r\n", "\n") == after) == fits


async def test_what_was_allowed_is_allowed_once(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    asked = permission(kind="edit", locations=[{"path": str(path)}])
    async with stage(tmp_path, asked, write(path, "one\n"), write(path, "two\n")) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.answer()
        await play.seen(session_id, "approval_request", 2)
        assert path.read_text("utf-8") == "one\n"
        await play.answer("reject_once")
        await play.idle(session_id)
    assert path.read_text("utf-8") == "one\n"


async def test_what_is_allowed_for_one_file_is_not_for_another(tmp_path: Path) -> None:
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    diff = [{"type": "diff", "path": str(path), "newText": "new\n"}]
    async with stage(tmp_path, permission(kind="edit", content=diff), write(other, "x")) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.answer()
        await play.seen(session_id, "approval_request", 2)
        await play.answer("reject_once")
        await play.idle(session_id)
    assert not other.exists()


def terminal(method: str) -> dict[str, Any]:
    return asks(f"terminal/{method}", terminalId="{terminal}")


def create(*words: str, **more: Any) -> dict[str, Any]:
    name, *args = words
    return asks("terminal/create", command=name, args=args, **more)


async def test_a_terminal_runs_a_command_and_tells_how_it_ended(tmp_path: Path) -> None:
    actions = (
        create("sh", "-c", "echo out; echo err >&2; exit 3"),
        terminal("wait_for_exit"),
        terminal("output"),
        terminal("release"),
        terminal("output"),
    )
    async with stage(tmp_path, *actions, config=ALLOW) as play:
        records = await play.turn()
    _, ended, output, _, gone = told(records)
    assert ended == {"exitCode": 3}
    assert output["exitStatus"] == {"exitCode": 3}
    assert (output["output"], output["truncated"]) == ("out\nerr\n", False)
    assert gone["code"] == -32002
    (call,) = of(records, "tool_call")
    assert call.name == "run_command"
    (result,) = of(records, "tool_result")
    assert (result.status, result.text) == ("error", "out\nerr\n[exit code 3]")


async def test_a_terminal_keeps_the_end_of_what_it_prints(tmp_path: Path) -> None:
    line = "for i in 1 2 3; do printf 'ä%s' $i; done"
    actions = (create(line, outputByteLimit=5), terminal("wait_for_exit"), terminal("output"))
    async with stage(tmp_path, *actions, config=ALLOW) as play:
        *_, output = told(await play.turn())
    assert (output["output"], output["truncated"]) == ("2ä3", True)


async def test_a_command_of_a_call_that_was_just_allowed_is_part_of_it(tmp_path: Path) -> None:
    actions = (
        permission(**command("echo hi")),
        create("echo hi"),
        terminal("wait_for_exit"),
        {"update": {
            "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "done"}}],
        }},
    )  # fmt: skip
    async with stage(tmp_path, *actions) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.answer()
        records = await play.idle(session_id)
    assert len(of(records, "tool_call")) == 1
    assert [r.status for r in of(records, "tool_result")] == ["ok"]


async def test_a_command_is_refused_where_nothing_is_changed(tmp_path: Path) -> None:
    async with stage(tmp_path, create("touch made")) as play:
        (error,) = told(await play.turn(mode="plan"))
    assert error["code"] == -32602
    assert not (tmp_path / "made").exists()


async def test_a_terminal_is_killed_and_ends_with_its_turn(tmp_path: Path) -> None:
    pid = "import os,time,pathlib; pathlib.Path('{}').write_text(str(os.getpid())); time.sleep(600)"
    words = [[sys.executable, "-c", pid.format(name)] for name in ("killed", "left")]
    actions = (
        create(*words[0]),
        {"until_file": str(tmp_path / "killed")},
        terminal("kill"),
        terminal("wait_for_exit"),
        create(*words[1]),
        {"until_file": str(tmp_path / "left")},
    )
    async with stage(tmp_path, *actions, config=ALLOW) as play:
        records = await play.turn()
        for name in ("killed", "left"):
            assert not psutil.pid_exists(int((tmp_path / name).read_text()))
        rows = await play.host.log.query(
            "SELECT mark FROM external_processes WHERE mark LIKE 'term%'"
        )
    assert told(records)[2] == {"signal": "SIGTERM"}
    assert shlex.join(words[0]) in [c.arguments["command"] for c in of(records, "tool_call")]
    assert [r.status for r in of(records, "tool_result")] == ["cancelled", "cancelled"]
    assert len(rows) <= 2


async def test_a_call_that_shows_a_terminal_has_its_output(tmp_path: Path) -> None:
    shown = {
        "ask": {
            "method": "session/request_permission",
            "tell": False,
            "params": {
                "toolCall": {
                    "toolCallId": "t1",
                    "title": "Look",
                    "kind": "read",
                    "content": [{"type": "terminal", "terminalId": "{terminal}"}],
                },
                "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}],
            },
        }
    }
    actions = (
        tool_call("t0", status="completed"),
        create("echo shown"),
        terminal("wait_for_exit"),
        shown,
        tool_update(status="completed"),
    )
    async with stage(tmp_path, *actions, config=ALLOW) as play:
        records = await play.turn()
    assert "shown\n" in [r.text for r in of(records, "tool_result")]


async def _asked_again(play: Any, session_id: str) -> Any:
    """The first question is allowed, the one that follows is refused; that one."""
    await play.answer()
    await play.seen(session_id, "approval_request", 2)
    second = await play.asked()
    await play.answer("reject_once")
    await play.idle(session_id)
    return second


async def test_a_file_that_was_not_among_the_changes_shown_is_not_allowed(tmp_path: Path) -> None:
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    diff = [{"type": "diff", "path": str(path), "newText": "new\n"}]
    asked = permission(kind="edit", content=diff, locations=[{"path": str(other)}])
    async with stage(tmp_path, asked, write(other, "x")) as play:
        session_id = await play.session()
        await play.say(session_id)
        assert (await _asked_again(play, session_id)).tool == "write_file"
    assert not other.exists()


async def test_a_call_that_becomes_a_write_while_it_is_asked_about_allows_none(
    tmp_path: Path,
) -> None:
    path, answered = tmp_path / "a.txt", tmp_path / "answered"
    call = {"toolCallId": "t1", "kind": "read", "title": "look", "locations": [{"path": str(path)}]}
    question = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "session/request_permission",
        "params": {"sessionId": "agent-session-1", "toolCall": call, "options": OPTIONS},
    }
    actions = (
        {"raw": json.dumps(question)},
        tool_update(kind="edit"),
        {"update": {"sessionUpdate": "plan", "entries": []}},
        {"until_file": str(answered)},
        write(path, "x"),
    )
    async with stage(tmp_path, *actions, config='[approvals.policy]\nread = "ask"\n') as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.seen(session_id, "plan_updated")
        await play.seen(session_id, "approval_request")
        await play.answer()
        answered.touch()
        await play.seen(session_id, "approval_request", 2)
        assert (await play.asked()).tool == "write_file"
        await play.answer("reject_once")
        await play.idle(session_id)
    assert not path.exists()


@pytest.mark.parametrize(
    "env", [{"name": "PATH", "value": "/evil"}, {"name": "LD_PRELOAD", "value": "./a b"}]
)
async def test_what_is_set_for_a_command_is_part_of_what_is_allowed(
    tmp_path: Path, env: dict[str, str]
) -> None:
    create = asks("terminal/create", command="true", env=[env])
    async with stage(tmp_path, permission(**command("true")), create) as play:
        session_id = await play.session()
        await play.say(session_id)
        second = await _asked_again(play, session_id)
    assert f"{env['name']}=" in second.subject.command
    assert env["value"] in second.subject.command


async def test_a_rule_for_a_command_is_none_for_it_with_variables(tmp_path: Path) -> None:
    line = "npm test"
    plain = asks("terminal/create", command=line, env=[{"name": "CI", "value": "1"}])
    create = asks("terminal/create", command=line, env=[{"name": "PATH", "value": "/evil"}])
    async with stage(tmp_path, plain, plain, create) as play:
        session_id = await play.session()
        await play.say(session_id)
        assert (await play.asked()).subject.command == line
        await play.answer("allow_session")
        second = (await play.seen(session_id, "approval_request", 2)).value.approval
        assert "PATH=/evil" in second.subject.command
        await play.answer("reject_once")
        records = await play.idle(session_id)
    assert len(of(records, "tool_call")) == 3
    assert len(of(records, "approval_request")) == 2


async def test_what_is_no_name_of_a_variable_is_refused(tmp_path: Path) -> None:
    create = asks("terminal/create", command="true", env=[{"name": "A=1; true #", "value": ""}])
    async with stage(tmp_path, create, config=ALLOW) as play:
        (error,) = told(await play.turn())
    assert error["code"] == -32602


async def test_a_command_is_allowed_for_the_folder_that_was_shown(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    create = asks("terminal/create", command="make", cwd=str(tmp_path / "below"))
    async with stage(tmp_path, permission(**command("make")), create) as play:
        session_id = await play.session()
        await play.say(session_id)
        second = await _asked_again(play, session_id)
    assert second.subject.cwd == str(tmp_path / "below")


def unwaited(number: int, method: str, **params: Any) -> dict[str, Any]:
    """A request whose answer the agent does not wait for."""
    params = {"sessionId": "agent-session-1", **params}
    line = {"jsonrpc": "2.0", "id": 10_000 + number, "method": method, "params": params}
    return {"raw": json.dumps(line)}


async def test_what_an_agent_does_not_wait_for_is_done_before_its_turn_ends(tmp_path: Path) -> None:
    places = [tmp_path / f"{number}.txt" for number in range(30)]
    writes = [
        unwaited(number, "fs/write_text_file", path=str(place), content="line\n" * 20_000)
        for number, place in enumerate(places)
    ]
    async with stage(tmp_path, *writes, config=ALLOW) as play:
        records = await play.turn()
        assert all(place.exists() for place in places)
    assert [result.status for result in of(records, "tool_result")] == ["ok"] * 30


@pytest.mark.parametrize("method", ["fs/write_text_file", "terminal/create"])
async def test_nobody_is_asked_for_an_agent_that_has_ended_its_turn(
    tmp_path: Path, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"path": str(tmp_path / "a.txt"), "content": "x", "command": "touch a.txt"}
    async with stage(tmp_path, unwaited(1, method, **given)) as play:
        records = await play.turn()
        assert await play.host.approvals.page(state="pending") == ([], None)
    assert [result.status for result in of(records, "tool_result")] == ["cancelled"]
    assert not (tmp_path / "a.txt").exists()
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


async def test_terminals_are_counted_also_while_they_are_asked_for(tmp_path: Path) -> None:
    many = [unwaited(n, "terminal/create", command=f"sleep 600; echo {n}") for n in range(60)]
    async with stage(tmp_path, *many, config=ALLOW) as play:
        records = await play.turn()
    assert len(of(records, "tool_call")) == 32
