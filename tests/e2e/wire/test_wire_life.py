"""Rows of PROTOCOL 1's table and of specs/limits 1.3: how a connection begins and ends."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from wire_peer import PROBE

# -- life cycle


def test_anything_before_initialize_is_refused_or_dropped(start):
    peer = start(opened=False)
    peer.ask(1, "server/ping")
    assert peer.answer(1)["error"]["code"] == -32002
    peer.ask(2, "shutdown")
    assert peer.answer(2)["error"]["code"] == -32002
    peer.tell("event/ack", {"subscriptionId": "s", "cursor": "early"})
    peer.open()
    assert peer.call(3, "report")["notes"] == []


def test_a_second_initialize_is_refused(shared):
    peer = shared
    peer.ask(1, "initialize", {"processId": None})
    assert peer.answer(1)["error"]["code"] == -32600
    peer.alive()


def test_after_shutdown_everything_but_exit_is_refused_and_exit_ends_with_0(start, framing):
    peer = start()
    peer.tell("initialized", {})
    peer.ask(1, "shutdown")
    assert peer.answer(1)["result"] == (None if framing == "lsp" else {})
    peer.ask(2, "server/ping")
    assert peer.answer(2)["error"]["code"] == -32600
    peer.ask(3, "initialize", {})
    assert peer.answer(3)["error"]["code"] == -32600
    peer.tell("exit")
    assert peer.ends() == 0


@pytest.mark.parametrize("opened", [True, False])
def test_exit_without_shutdown_ends_with_1(start, opened):
    peer = start(opened=opened)
    peer.tell("exit")
    assert peer.ends() == 1


@pytest.mark.parametrize(
    "params",
    [
        {"callboard": {"protocolVersions": ["9.0"]}},
        {"initializationOptions": {"callboard": {"protocolVersions": ["9.0", "8.1"]}}},
        {"callboard": {"protocolVersions": []}},
    ],
)
def test_versions_that_are_not_spoken_are_refused_with_those_that_are(start, params):
    peer = start(opened=False)
    peer.ask(1, "initialize", params)
    error = peer.answer(1)["error"]
    assert (error["code"], error["data"]["kind"]) == (-31001, "unsupportedVersion")
    assert error["data"]["supported"] == ["1.0"]
    peer.open()
    peer.alive()


@pytest.mark.parametrize(
    "params",
    [
        {"processId": "12"},
        {"callboard": {"clientId": 5}},
        {"callboard": {"capabilities": {"deltas": "yes"}}},
        {"callboard": 5},
        {"initializationOptions": {"callboard": {"protocolVersions": "1.0"}}},
        [],
    ],
)
def test_a_wrong_initialize_is_invalid_params_and_may_be_tried_again(start, params):
    peer = start(opened=False)
    peer.ask(1, "initialize", params)
    assert peer.answer(1)["error"]["code"] == -32602
    peer.open()
    peer.alive()


@pytest.mark.parametrize("place", ["callboard", "initializationOptions"])
def test_what_the_client_says_about_itself_reaches_the_handlers(start, place):
    own = {"protocolVersions": ["7.0", "1.0"], "clientId": "me", "capabilities": {"deltas": False}}
    peer = start(opened=False)
    result = peer.open(**{place: own if place == "callboard" else {"callboard": own}})
    assert result["capabilities"]["experimental"]["callboard"]["protocolVersion"] == "1.0"
    report = peer.call(1, "report")
    assert (report["client"], report["deltas"]) == ("me", False)


def test_initialize_is_answered_before_anything_heavy_is_imported(start, framing):
    peer = start(opened=False)
    capabilities = peer.open()["capabilities"]
    assert capabilities["experimental"]["callboard"]["heavy"] == []
    assert ("textDocumentSync" in capabilities) == (framing == "lsp")
    if framing == "lsp":
        assert capabilities["positionEncoding"] == "utf-16"
        assert capabilities["textDocumentSync"]["openClose"] is True
        assert capabilities["textDocumentSync"]["change"] == 2
        assert capabilities["workspace"]["workspaceFolders"]["supported"] is True
    assert peer.call(1, "report")["heavy"] == []


def test_what_was_sent_along_with_initialize_is_not_lost(start):
    peer = start(opened=False)
    first = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}).encode()
    second = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "server/ping"}).encode()
    half = peer.encode(second)
    peer.raw(peer.encode(first) + half + half[:9])
    assert "result" in peer.answer(1)
    assert "result" in peer.answer(2)
    peer.raw(half[9:])
    assert "result" in peer.answer(2)


# -- the end


@pytest.mark.parametrize("endless", [False, True])
def test_interrupts_73_the_end_of_stdin_ends_the_process_within_its_time(start, tmp_path, endless):
    report = tmp_path / "report.json"
    peer = start(report=str(report), endlessEnd=endless)
    peer.do(1, "block")
    peer.do(2, "report")
    peer.answer(2)
    began = time.monotonic()
    peer.process.stdin.close()
    rest = {m["id"]: m for m in peer.rest()}
    assert peer.ends() == 0
    assert time.monotonic() - began < 10
    assert rest[1]["error"]["data"]["kind"] == "shuttingDown"
    said = json.loads(report.read_text())
    assert (said["ended"], said["outcomes"]) == ("eof", {"1": "stopped"})


def test_the_end_of_stdin_before_anything_was_said_ends_the_process(start):
    peer = start(opened=False)
    peer.process.stdin.close()
    assert peer.ends() == 0


def test_a_client_that_closes_its_reading_end_is_gone(start, tmp_path):
    report = tmp_path / "report.json"
    peer = start(report=str(report))
    reading, theirs = os.pipe()
    with subprocess.Popen(
        [sys.executable, str(PROBE)],
        stdin=subprocess.PIPE,
        stdout=theirs,
        env={**os.environ, "PROBE": json.dumps({"report": str(report)})},
    ) as process:
        os.close(theirs)
        peer.close()
        peer.process = process
        peer.open_unheard()
        os.read(reading, 1)
        os.close(reading)
        peer.do(3, "flood", count=10, bytes=1000)
        assert peer.ends() == 0
        process.stdin.close()
    assert json.loads(report.read_text())["ended"] == "eof"


def test_interrupts_73_a_dead_parent_is_noticed_while_stdin_stays_open(start, tmp_path):
    report = tmp_path / "report.json"
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    peer = start(opened=False, report=str(report), limits={"parent_poll_seconds": 0.02})
    peer.open(processId=parent.pid)
    peer.alive()
    parent.kill()  # not waited for: a zombie is dead
    assert peer.ends() == 0
    parent.wait()
    parent.stdin.close()
    assert json.loads(report.read_text())["ended"] == "parent"


def test_a_parent_that_cannot_be_looked_at_lives(start):
    """Without a descriptor left to look with; that came out of the watch and ended the server."""
    peer = start(opened=False, limits={"parent_poll_seconds": 0.02})
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent:
        peer.open(processId=parent.pid)
        peer.alive()
        process = peer.process.pid
        soft, hard = resource.prlimit(process, resource.RLIMIT_NOFILE)
        resource.prlimit(process, resource.RLIMIT_NOFILE, (3, hard))
        peer.says(b"cannot be looked at")
        peer.alive()
        resource.prlimit(process, resource.RLIMIT_NOFILE, (soft, hard))
        parent.kill()
        assert peer.ends() == 0


def test_a_parent_that_is_dead_already_is_noticed_at_once(start):
    parent = subprocess.Popen([sys.executable, "-c", ""])
    parent.wait()
    peer = start(opened=False)
    peer.open(processId=parent.pid)
    assert peer.ends() == 0


@pytest.mark.parametrize(
    ("number", "code", "reason"),
    [(signal.SIGTERM, 143, "sigterm"), (signal.SIGINT, 130, "sigint")],
)
def test_a_first_signal_ends_the_process_in_order_while_stdin_stays_open(
    start, tmp_path, number, code, reason
):
    report = tmp_path / "report.json"
    peer = start(report=str(report))
    peer.do(1, "block")
    peer.alive()
    peer.process.send_signal(number)
    assert peer.answer(1)["error"]["data"]["kind"] == "shuttingDown"
    assert peer.ends() == code
    assert json.loads(report.read_text())["ended"] == reason


def test_a_second_signal_ends_the_process_at_once(start):
    peer = start(endlessEnd=True, limits={"drain_seconds": 600, "last_resort_seconds": 600})
    peer.alive()
    peer.process.send_signal(signal.SIGINT)
    while True:  # until the first one has arrived: then new work is refused
        peer.ask(1, "server/ping")
        if "error" in peer.answer(1):
            break
    peer.process.send_signal(signal.SIGINT)
    assert peer.ends() == -signal.SIGINT


def test_a_process_that_cannot_even_begin_is_ended(start):
    peer = start(opened=False, endlessStart=True, limits={"last_resort_seconds": 0.2})
    peer.open()
    peer.says(b"starting")
    peer.process.send_signal(signal.SIGTERM)
    assert peer.ends() == 143


def test_a_process_that_cannot_end_is_ended(start):
    peer = start(limits={"last_resort_seconds": 0.2, "answer_seconds": 0.1})
    peer.do(1, "shielded")
    peer.alive()
    peer.tell("exit")
    assert peer.ends() == 1
