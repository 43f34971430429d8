import inspect
import os
import sys
from pathlib import Path

import anyio
import pytest

from callboard_client import (
    Client,
    ClientError,
    ClientOptions,
    ConnectionLost,
    RemoteError,
    StartError,
    agents,
    api,
    groups,
    history,
    peers,
    rooms,
    schedules,
)
from callboard_rpc.common import SessionId
from callboard_rpc.methods import METHODS
from callboard_rpc.server import PingParams, PingResult

pytestmark = pytest.mark.anyio


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_typed_call_returns_the_class_of_the_method_table(start) -> None:
    async with start() as client:
        result = await client.call("server/ping", PingParams(echo={"a": [1, None]}))
        assert isinstance(result, PingResult)
        assert result.echo == {"a": [1, None]}
        assert client.handshake.server_info.name == "fake"


async def test_unknown_fields_and_enum_values_of_a_newer_server_pass(start) -> None:
    async with start() as client:
        answer = await client.sessions.create("/")
        assert answer.session.mode == "a mode of the future"


async def test_a_list_is_iterated_over_all_its_pages(start) -> None:
    async with start() as client:
        ids = [session.session_id async for session in client.sessions.list()]
        assert ids == [f"ses_{n}" for n in range(6)]


async def test_an_error_carries_kind_code_retry_and_correlation(start) -> None:
    async with start() as client:
        with pytest.raises(RemoteError) as caught:
            await client.sessions.delete(SessionId("ses_1"))
    fault = caught.value
    assert (fault.kind, fault.code, fault.retryable) == ("overloaded", -31004, True)
    assert (fault.retry_after_ms, fault.correlation_id) == (7, "cor_1")


async def test_a_method_outside_of_the_table_is_refused_before_it_is_sent(start) -> None:
    async with start() as client:
        for name in ("fake/crash", "event/ack", "approval/request"):
            with pytest.raises(ClientError, match=name):
                await client.call(name)


async def test_every_request_of_the_table_has_a_typed_method() -> None:
    source = "".join(
        inspect.getsource(module)
        for module in (agents, api, groups, history, peers, rooms, schedules)
    )
    own = {"initialize", "shutdown", "event/subscribe", "event/unsubscribe"}
    requests = {
        method.name
        for method in METHODS.values()
        if method.direction == "clientToServer" and method.kind == "request"
    }
    assert [name for name in sorted(requests - own) if f'"{name}"' not in source] == []


async def test_megabytes_pass_both_ways_at_once_without_a_deadlock(start) -> None:
    big = "x" * (3 * 1024 * 1024)
    async with start() as client:
        results: list[int] = []

        async def echo() -> None:
            results.append(len((await client.request("fake/echo", {"text": big}))["text"]))

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(echo)
    assert results == [len(big)] * 8


async def test_a_cancelled_call_cancels_the_request(start) -> None:
    async with start() as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.request, "fake/hang", {})
            while "fake/hang" not in (await client.request("fake/seen", {}))["methods"]:
                pass
            tasks.cancel_scope.cancel()
        assert len((await client.request("fake/seen", {}))["cancelled"]) == 1


async def test_what_cannot_be_sent_is_said_at_once_and_harms_nothing(start) -> None:
    async with start() as client:
        for value in ("\ud800", 1 << 70):
            with pytest.raises(ClientError, match="server/ping cannot be sent"):
                await client.server.ping(value)
        assert (await client.server.ping(3)).echo == 3


async def test_lines_that_are_no_messages_do_not_end_the_conversation(start) -> None:
    async with start() as client:
        await client.request("fake/junk", {})
        assert (await client.server.ping(1)).echo == 1


async def test_a_request_that_the_client_does_not_serve_is_answered_with_an_error(start) -> None:
    async with start() as client:
        await client.request("fake/unknownRequest", {})
        replies = (await client.request("fake/seen", {}))["replies"]
        assert replies["u1"]["error"]["code"] == -32601


async def test_open_calls_fail_when_the_server_dies_and_later_ones_say_why(start) -> None:
    async with start() as client:
        with pytest.raises(ConnectionLost, match=r"fake/crash: the server ended with status 9"):
            await client.request("fake/crash", {})
        with pytest.raises(ConnectionLost, match="status 9"):
            await client.server.ping()


async def test_with_restart_a_mutating_call_survives_a_crash_and_happens_once(start) -> None:
    async with start(restart=True) as client:
        await client.request("fake/crashBeforeReplyTo", {"method": "session/create"})
        before = client.pid
        answer = await client.sessions.create("/")
        assert client.pid != before
        assert answer.session.session_id == "ses_1"
        assert (await client.sessions.create("/")).session.session_id == "ses_2"


async def test_a_server_that_cannot_start_again_ends_in_an_error_that_says_so(start) -> None:
    async with start("once", restart=True) as client:
        with pytest.raises(ClientError, match="status 4"):
            await client.request("fake/crash", {})


async def test_a_program_that_does_not_exist_is_named() -> None:
    with pytest.raises(StartError, match="no-such-program"):
        async with Client.start(["/no-such-program"]):
            pass


async def test_a_program_that_is_no_server_is_quoted(start) -> None:
    with pytest.raises(StartError, match=r"status 3.*cannot read the configuration.*Welcome"):
        async with start("banner"):
            pass


async def test_a_server_that_does_not_answer_is_given_up_and_ended(start, tmp_path: Path) -> None:
    with pytest.raises(StartError, match="did not answer"):
        async with start("silent", start_timeout_s=0.5):
            pass
    assert not alive(int((tmp_path / "pid").read_text()))


async def test_leaving_the_block_ends_the_process(start) -> None:
    async with start() as client:
        pid = client.pid
    assert not alive(pid)


async def test_a_server_that_ignores_everything_is_killed(start) -> None:
    async with start("deaf", stop_grace_s=0.1) as client:
        pid = client.pid
    assert not alive(pid)


async def test_kill_ends_a_server_at_once(start) -> None:
    async with start() as client:
        pid = client.pid
        client.kill()
    assert not alive(pid)


async def test_a_fault_of_the_block_comes_out_as_it_is_and_the_process_ends(start) -> None:
    with pytest.raises(ZeroDivisionError):
        async with start() as client:
            pid = client.pid
            raise ZeroDivisionError
    assert not alive(pid)


async def test_a_cancelled_block_ends_the_process(start) -> None:
    with anyio.CancelScope() as scope:
        async with start() as client:
            pid = client.pid
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert not alive(pid)


async def test_stderr_can_go_to_a_file(tmp_path: Path) -> None:
    program = "import sys; sys.stderr.write('what went wrong'); sys.exit(5)"
    with (tmp_path / "err").open("wb") as file, pytest.raises(StartError, match="status 5"):
        options = ClientOptions(command=(sys.executable, "-c", program), stderr=file)
        async with Client.start(options=options):
            pass
    assert (tmp_path / "err").read_text() == "what went wrong"
