"""Export and import between real processes: equal, all or nothing over kill -9, and nobody has to wait."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_harness import Cli

from callboard_client import Client, ClientOptions, RemoteError
from harness.exports import exported, long_session
from harness.inside import host_in
from harness.process import Gone, RpcError, ServerProcess, scenario, types

SCENARIO = """
rules:
  - when: {last_user: much, step: 0}
    answer:
      - say: I run it.
      - call: {tool: run_command, arguments: {command: "seq 1 60000"}}
default:
  - say: "You said: {{last_user}}."
  - usage: {input_tokens: 12, output_tokens: 3}
"""
ALLOW = {"config": {"approvals": {"policy": {"run_command": "allow"}}}}
LONG = "ses_01long"


def server(tmp_path: Path, name: str, **more: Any) -> ServerProcess:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    return ServerProcess(folder, model=scenario(tmp_path, SCENARIO), callboard=ALLOW, **more)


def bare(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in event.items() if k != "pos"} for event in events]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A session that takes several commits to import."""
    path = tmp_path / "long.jsonl"
    path.write_text(long_session(LONG, str(tmp_path), 700), "utf-8")
    return path


def test_a_session_goes_from_store_to_store_with_its_blobs_and_is_found(tmp_path: Path) -> None:
    with server(tmp_path, "a") as one, server(tmp_path, "b") as two:
        session_id = one.create(tmp_path, title="Travels")
        one.prompt(session_id, "print much, platypus")
        one.wait(session_id)
        text = exported(one.call, session_id)
        assert "\n{" in text
        path = tmp_path / "session.jsonl"
        path.write_text(text, "utf-8")
        result = two.call("session/import", path=str(path), workDoneToken="w")
        assert result["session"]["title"] == "Travels"
        assert (result["exportedId"], result["added"]) == (session_id, 0)
        assert bare(two.events(session_id)) == bare(one.events(session_id))
        assert exported(two.call, session_id, limit=1) == text
        (blob,) = [e["data"]["blob"] for e in one.events(session_id) if e["data"].get("blob")]
        pieces = [each.call("blob/read", blobId=blob["blobId"]) for each in (one, two)]
        assert pieces[0] == pieces[1]
        assert two.call("session/search", query="platypus")["data"]
        used = [each.call("session/usage", sessionId=session_id) for each in (one, two)]
        assert used[0] == used[1]
        assert (
            used[1]["total"]["usage"]
            == two.call("session/get", sessionId=session_id)["session"]["usage"]
        )
        told = [m["params"]["value"] for m in two.seen if m.get("method") == "$/progress"]
        assert [each["kind"] for each in told[:1] + told[-1:]] == ["begin", "end"]
        assert told[-2]["percentage"] == 100
        # and by its text, where the server cannot see the file
        copy = two.call("session/import", content=text, newId=True)
        assert copy["session"]["sessionId"] != session_id


def test_bad_params_and_files_are_named(tmp_path: Path) -> None:
    with server(tmp_path, "a") as one:
        for params, kind in (
            ({}, "invalidParams"),
            ({"path": "/x", "content": "{}"}, "invalidParams"),
            ({"path": "relative.jsonl"}, "invalidParams"),
            ({"path": "/nul\u0000"}, "invalidParams"),
            ({"path": str(tmp_path / "none")}, "pathNotFound"),
            ({"path": "/dev/zero"}, "pathDenied"),
            ({"path": str(one.folder / "store.db")}, "pathDenied"),
            ({"content": ""}, "importRefused"),
            ({"content": "{}", "cwd": str(tmp_path / "none")}, "pathNotFound"),
            ({"content": "{}", "cwd": "here"}, "invalidParams"),
        ):
            with pytest.raises(RpcError) as error:
                one.call("session/import", **params)
            assert error.value.kind == kind, params
        with pytest.raises(RpcError) as error:
            one.call("session/usage", sessionId="ses_none")
        assert error.value.kind == "sessionNotFound"
        assert one.call("session/list")["data"] == []


@pytest.mark.parametrize("stage", ["committed:1", "deciding:3"])
def test_killed_in_mid_import_nothing_is_left_and_it_can_be_done_again(
    tmp_path: Path, file: Path, stage: str
) -> None:
    fault = {"CALLBOARD_FAULT": f"sessions.publish_piece.{stage}"}
    with server(tmp_path, "a", environ=fault) as doomed, pytest.raises(Gone):
        doomed.call("session/import", path=str(file))
    with server(tmp_path, "a") as again:
        with pytest.raises(RpcError) as error:
            again.call("session/get", sessionId=LONG)
        assert error.value.kind == "sessionNotFound"
        assert again.call("session/list")["data"] == []
        left = again.call("event/list", scope={"kind": "all"})["data"]
        assert types(left) == ([] if stage == "deciding:1" else ["session_deleted"])
        assert again.call("session/search", query="word")["data"] == []
        result = again.call("session/import", path=str(file))
        assert result["events"] == 700
        assert exported(again.call, LONG) == file.read_text("utf-8")
        again.prompt(LONG, "and on")
        assert again.wait(LONG)["turn"]["state"] == "completed"


def test_killed_in_mid_import_another_process_takes_it_back_and_its_clients_are_told(
    tmp_path: Path, file: Path
) -> None:
    with server(tmp_path, "a") as other:
        other.call("event/subscribe", scope={"kind": "catalog"}, **{"from": "now"})
        fault = {"CALLBOARD_FAULT": "sessions.publish_piece.committed:2"}
        with server(tmp_path, "a", environ=fault) as doomed, pytest.raises(Gone):
            doomed.call("session/import", path=str(file))
        gone = other.until_event(lambda e: e["type"] == "session_deleted")
        assert gone["sessionId"] == LONG
        assert other.call("session/import", path=str(file))["events"] == 700


def test_killed_after_the_last_commit_a_keyed_import_has_its_answer(
    tmp_path: Path, file: Path
) -> None:
    fault = {"CALLBOARD_FAULT": "sessions.publish_piece.committed:3"}
    with server(tmp_path, "a", environ=fault) as doomed, pytest.raises(Gone):
        doomed.call("session/import", path=str(file), idempotencyKey="k")
    with server(tmp_path, "a") as again:
        result = again.call("session/import", path=str(file), idempotencyKey="k")
        assert (result["session"]["sessionId"], result["events"]) == (LONG, 700)
        with pytest.raises(RpcError) as error:
            again.call("session/import", path=str(file), idempotencyKey="other")
        assert error.value.kind == "sessionExists"


def test_while_it_is_imported_nobody_finds_a_session_or_writes_to_it(
    tmp_path: Path, file: Path
) -> None:
    with server(tmp_path, "a") as one, server(tmp_path, "a") as two:
        two.call("event/subscribe", scope={"kind": "catalog"}, **{"from": "now"})
        asked = one.request("session/import", path=str(file))
        two.until_event(lambda e: e["sessionId"] == LONG)
        seen: list[str] = []
        while not two.call("session/list")["data"]:
            try:
                two.prompt(LONG, "too early")
                break  # it has become whole between the two requests
            except RpcError as error:
                seen.append(error.kind)
        assert set(seen) <= {"sessionNotFound"}
        one.result(asked)
        two.wait(LONG)
        events = two.events(LONG)
        assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
        assert len([e for e in events if e["data"].get("author", {}).get("name") == "tests"]) >= 699


def test_an_import_that_its_client_cancels_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "longer.jsonl"
    path.write_text(long_session(LONG, str(tmp_path), 6_000), "utf-8")
    with server(tmp_path, "a") as one:
        one.call("event/subscribe", scope={"kind": "catalog"}, **{"from": "now"})
        asked = one.request("session/import", path=str(path))
        one.until_event(lambda e: e["sessionId"] == LONG)
        one.notify("$/cancelRequest", id=asked)
        with pytest.raises(RpcError) as error:
            one.result(asked)
        assert error.value.kind == "requestCancelled"
        seen = [
            e for m in one.seen if m.get("method") == "event/batch" for e in m["params"]["events"]
        ]
        if "session_deleted" not in types(seen):  # else it was quicker than the answer
            one.until_event(lambda e: e["type"] == "session_deleted")
        assert one.call("session/list")["data"] == []


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    made = Cli(tmp_path)
    yield made
    made.close()


def test_from_the_command_line(cli: Cli, tmp_path: Path) -> None:
    session_id = cli.session("hello")
    path = tmp_path / "one.jsonl"
    assert cli("sessions", "export", session_id, "-o", str(path)).code == 0
    again = cli("sessions", "import", str(path))
    assert again.code == 2
    assert "--new-id" in again.err
    other = str(tmp_path / "other" / "store.db")
    done = cli("sessions", "import", str(path), "--store", other)
    assert done.code == 0
    assert session_id in done.out
    copy = cli.json("sessions", "import", str(path), "--new-id", "--cwd", str(tmp_path))[0]
    assert copy["session"]["cwd"] == str(tmp_path)
    assert copy["exportedId"] == session_id
    path.write_text(path.read_text("utf-8")[:-40], "utf-8")
    cut = cli("sessions", "import", str(path), "--new-id")
    assert (cut.code, "line " in cut.err, "Nothing was imported" in cut.err) == (2, True, True)
    used = cli("usage", "--runs")
    assert used.code == 0
    assert "1,200" in used.out and "run 1" in used.out and "?" in used.out


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_typed_calls_of_the_client(tmp_path: Path, anyio_backend: str, cli: Cli) -> None:
    options = ClientOptions(env=cli.environment)
    async with Client.start(options=options) as client:
        result = await client.run("hello", cwd=tmp_path).result()
        text = "".join([piece async for piece in client.sessions.export(result.session_id)])
        copy = await client.sessions.import_text(text, new_id=True)
        path = tmp_path / "x.jsonl"
        path.write_text(text, "utf-8")
        with pytest.raises(RemoteError) as error:
            await client.sessions.import_file(path)
        assert error.value.kind == "sessionExists"
        used = await client.sessions.usage(copy.session.session_id)
        assert len(used.runs) == 1
        assert used.total.usage.input_tokens == 1200


@pytest.mark.soak
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_an_import_of_a_hundred_thousand_events_lets_others_commit(
    tmp_path: Path, anyio_backend: str
) -> None:
    """The slowest commit of another process waits less than 250 ms longer than it does anyway."""
    path = tmp_path / "huge.jsonl"
    path.write_text(long_session(LONG, str(tmp_path), 100_000), "utf-8")
    with server(tmp_path, "a") as importing:
        async with host_in(importing.folder) as host:

            async def slowest(until: Callable[[int], bool]) -> float:
                slow, n = 0.0, 0
                while not until(n):
                    n += 1
                    began = time.perf_counter()
                    await host.log.transact(lambda tx: tx.execute("DELETE FROM drafts"))
                    slow = max(slow, time.perf_counter() - began)
                return slow

            anyway = await slowest(lambda n: n == 5_000)
            # with a token the server tells how far it is, so that nobody's patience ends
            work = asyncio.create_task(
                asyncio.to_thread(importing.call, "session/import", path=str(path), workDoneToken=1)
            )
            slow = await slowest(lambda _: work.done())
            assert (await work)["events"] == 100_000
            assert slow < anyway + 0.25
