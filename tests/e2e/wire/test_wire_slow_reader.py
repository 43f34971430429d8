"""Rows of specs/limits 1.3: a client that does not read."""

import json
import threading
from pathlib import Path

import pytest

from callboard.rpc.wire import AHEAD_BYTES

MIB = 1024 * 1024


def test_a_client_that_stops_reading_does_not_stop_the_loop_and_loses_nothing(start):
    peer = start()
    peer.reading.clear()
    peer.do(1, "flood", count=200, bytes=20_000)
    for index in range(2, 12):
        peer.ask(index, "server/ping", {"echo": {"do": "report"}})
    peer.tell("event/ack", {"subscriptionId": "s", "cursor": "heard"})
    peer.do(12, "speak", text="all the same")
    peer.says(b"spoken: all the same")  # the loop and its timers go on, though the pipe is full
    assert peer.inbox.qsize() <= 1  # what the reader had in hand when it was stopped
    peer.reading.set()
    peer.do("last", "report")
    last = peer.answer("last")["result"]["echo"]
    assert last["notes"] == ["heard"]
    floods = [m["params"]["index"] for m in peer.aside if "params" in m]
    assert floods == list(range(200))
    ids = [m["id"] for m in peer.aside if "id" in m]
    assert ids == list(range(1, 13))


def test_both_sides_may_write_at_once(start):
    """A client that writes 20 MB before it reads anything: the classic deadlock of two pipes."""
    peer = start()
    peer.reading.clear()
    text = "x" * 100_000
    for index in range(200):
        peer.ask(index, "server/ping", {"echo": text})
    peer.do(200, "speak", text="all was heard")
    peer.says(b"spoken: all was heard")
    assert peer.inbox.qsize() <= 1
    peer.reading.set()
    for index in range(201):
        assert "result" in peer.answer(index)


def test_requests_wait_while_their_answers_could_not_be_read_and_cancels_do_not(start):
    peer = start(limits={"outbound_bytes": 100_000})
    peer.do(1, "block")
    peer.alive()
    peer.reading.clear()
    peer.do(2, "flood", count=20, bytes=100_000)
    peer.says(b"flooded: 2")
    peer.do(3, "flood", count=1, bytes=1)
    peer.do(4, "flood", count=1, bytes=1)
    peer.tell("$/cancelRequest", {"id": 4})
    peer.tell("$/cancelRequest", {"id": 1})
    peer.says(b"stopped: 1")
    assert b"flooded: 3" not in peer.stderr
    peer.reading.set()
    assert peer.answer(1)["error"]["code"] == -32800
    assert "result" in peer.answer(3)
    assert peer.answer(4)["error"]["code"] == -32800
    peer.says(b"flooded: 3")
    peer.alive()


@pytest.mark.parametrize(("how", "code"), [("exit", 1), ("eof", 0)])
def test_whoever_leaves_without_reading_has_left_at_once(start, how, code):
    peer = start(limits={"outbound_bytes": 100_000})
    peer.reading.clear()
    peer.do(1, "flood", count=20, bytes=100_000)
    peer.says(b"flooded: 1")
    peer.do(2, "speak", text="before the end")
    if how == "exit":
        peer.tell("exit")
    else:
        peer.process.stdin.close()
    peer.says(b"spoken: before the end")
    assert peer.ends() == code


def test_the_end_of_the_input_is_found_behind_what_nobody_reads_any_more(start):
    """A little more than the server takes in ahead: it has stopped reading when the end comes."""
    peer = start(limits={"outbound_bytes": 100_000, "stall_seconds": 600})
    peer.reading.clear()
    peer.do(1, "flood", count=20, bytes=100_000)
    peer.says(b"flooded: 1")
    ping = {"jsonrpc": "2.0", "method": "server/ping", "params": {"echo": "x" * 16 * 1024}}
    for index in range(2, 2 + AHEAD_BYTES // (16 * 1024 + 256)):
        peer.send({**ping, "id": index})
    peer.process.stdin.close()
    assert peer.ends() == 0


@pytest.mark.parametrize("framing", ["ndjson"], indirect=True)
def test_a_client_that_only_writes_fills_no_memory(start):
    """300 MB of requests, each with an answer as long, of which nobody reads one."""
    peer = start(limits={"stall_seconds": 3})
    peer.reading.clear()
    ping = {"jsonrpc": "2.0", "method": "server/ping", "params": {"echo": "x" * MIB}}

    def write():
        for index in range(300):
            peer.send({**ping, "id": index})

    writing = threading.Thread(target=write)
    writing.start()
    peer.says(b"closed: the client has read nothing")
    writing.join()  # what nobody will answer is read all the same
    status = Path(f"/proc/{peer.process.pid}/status").read_text()
    assert int(status.split("VmHWM:")[1].split()[0]) * 1024 < 200 * MIB


def test_deltas_are_merged_while_the_client_is_slow_and_dropped_when_it_is_too_slow(start):
    peer = start(limits={"outbound_frames": 20})
    peer.reading.clear()
    peer.do(1, "flood", count=3, bytes=1_000_000)  # one may be in the reader's hand
    peer.do(2, "stream", count=100, bytes=10)
    peer.do(3, "flood", count=20, bytes=10)
    peer.do(4, "stream", count=10, bytes=10)
    peer.do(5, "speak", text="all of it")
    peer.says(b"spoken: all of it")
    peer.reading.set()
    merged = peer.answer(2)["result"]["echo"]
    assert merged == {"queued": 1, "merged": 99, "dropped": 0}
    assert peer.answer(4)["result"]["echo"]["dropped"] == 10
    peer.alive()


def test_a_client_that_reads_nothing_for_too_long_is_cut_off_and_the_process_goes_on(
    start, tmp_path
):
    report = tmp_path / "report.json"
    peer = start(limits={"stall_seconds": 0.2}, report=str(report))
    peer.reading.clear()
    peer.do(1, "flood", count=200, bytes=20_000)
    peer.says(b"closed: the client has read nothing")
    assert peer.process.poll() is None  # it lives: only its connection is closed
    peer.process.stdin.close()
    peer.reading.set()
    assert peer.ends() == 0
    said = json.loads(report.read_text())
    assert "read nothing" in said["closed"]
    assert said["ended"] == "eof"
