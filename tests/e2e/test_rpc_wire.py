"""Every row of PROTOCOL 1's table and of specs/limits 1.3, in a real process over real pipes.

The process is `rpc_probe_server.py`: the wire's own parts with handlers that misbehave when asked.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

PROBE = Path(__file__).with_name("rpc_probe_server.py")
PATIENCE = 60


class Peer:
    """The other end of the pipes. A thread reads, so that nothing here can block for ever."""

    def __init__(self, framing, **given):
        environment = {**os.environ, "PROBE": json.dumps(given), "PYTHONUNBUFFERED": "1"}
        self.framing = framing
        self.process = subprocess.Popen(
            [sys.executable, str(PROBE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        self.inbox = queue.Queue()
        self.aside = []
        self.stderr = b""
        self.lines = queue.Queue()
        self.reading = threading.Event()
        self.reading.set()
        threading.Thread(target=self._read, daemon=True).start()
        self.drain = threading.Thread(target=self._read_errors, daemon=True)
        self.drain.start()

    def _read(self):
        out = self.process.stdout
        while True:
            self.reading.wait()
            line = out.readline()
            if not line:
                break
            if self.framing == "lsp":
                assert line.startswith(b"Content-Length: "), line
                length = int(line.split(b":")[1])
                assert out.readline() == b"\r\n"
                line = out.read(length)
                if len(line) < length:  # the server was cut off in the middle of a frame
                    break
            elif not line.endswith(b"\n"):
                break
            self.inbox.put(json.loads(line))
        self.inbox.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.stderr += line
            self.lines.put(line)

    def says(self, text):
        """Waits for a line on stderr."""
        while text not in self.lines.get(timeout=PATIENCE):
            pass

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def encode(self, body):
        if self.framing == "lsp":
            return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        return body + b"\n"

    def body(self, body):
        self.raw(self.encode(body))

    def send(self, message):
        self.body(json.dumps(message).encode())

    def ask(self, id, method, params=None):
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        self.send(message if params is None else {**message, "params": params})

    def tell(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method}
        self.send(message if params is None else {**message, "params": params})

    def do(self, id, name, **more):
        self.ask(id, "server/ping", {"echo": {"do": name, **more}})

    def next(self):
        if self.aside:
            return self.aside.pop(0)
        return self.inbox.get(timeout=PATIENCE)

    def answer(self, id):
        """The next answer to `id`; what comes before it is kept for `next`."""
        kept = []
        while True:
            message = self.next()
            assert message is not None, f"the server is gone: {self.stderr.decode()}"
            if (isinstance(message, dict) and message.get("id") == id) and "method" not in message:
                self.aside = kept + self.aside
                return message
            kept.append(message)

    def call(self, id, name, **more):
        self.do(id, name, **more)
        message = self.answer(id)
        return message["result"].get("echo") if "result" in message else message["error"]

    def open(self, **params):
        self.ask("open", "initialize", {"processId": None, **params})
        return self.answer("open")["result"]

    def open_unheard(self):
        self.ask("open", "initialize", {"processId": None})

    def alive(self):
        self.ask("alive", "server/ping", {"echo": "here"})
        assert self.answer("alive")["result"]["echo"] == "here"

    def ends(self):
        """The exit code, once the process has ended by itself while stdin stays open."""
        return self.process.wait(timeout=PATIENCE)

    def rest(self):
        """Everything that still comes until the server closes its end."""
        out, self.aside = self.aside, []
        while (message := self.inbox.get(timeout=PATIENCE)) is not None:
            out.append(message)
        return out

    def close(self):
        self.reading.set()
        for stream in (self.process.stdin, None):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture(params=["lsp", "ndjson"])
def framing(request):
    return request.param


@pytest.fixture
def start(framing):
    peers = []

    def make(*, opened=True, framing=framing, **given):
        peer = Peer(framing, **given)
        peers.append(peer)
        if opened:
            peer.open()
        return peer

    yield make
    for peer in peers:
        peer.close()


@pytest.fixture(scope="module")
def running():
    """A server for each framing, for tests that leave it as it was."""
    peers = {}

    def get(framing):
        if framing not in peers:
            peers[framing] = Peer(framing)
            peers[framing].open()
        peers[framing].aside.clear()
        return peers[framing]

    yield get
    for peer in peers.values():
        peer.close()


@pytest.fixture
def shared(running, framing):
    return running(framing)


# -- not JSON; JSON but no request; batch


@pytest.mark.parametrize("body", [b"{", b"nonsense", b'{"a":\xff}', b"[" * 20_000, b"NaN"])
def test_what_is_not_json_is_answered_with_parse_error_and_the_stream_goes_on(shared, body):
    peer = shared
    peer.body(body)
    message = peer.next()
    assert (message["id"], message["error"]["code"]) == (None, -32700)
    peer.alive()


@pytest.mark.parametrize(
    ("message", "id"),
    [
        (17, None),
        ("text", None),
        (None, None),
        ({}, None),
        ({"jsonrpc": "2.0", "id": 4}, 4),
        ({"jsonrpc": "2.0", "id": 4, "method": 5}, 4),
        ({"id": 4, "method": "server/ping"}, 4),
        ({"jsonrpc": "1.0", "id": 4, "method": "server/ping"}, 4),
        ({"jsonrpc": "2.0", "id": None, "method": "server/ping"}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "server/ping"}, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "server/ping"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "server/ping"}, None),
    ],
)
def test_json_that_is_no_request_is_invalid_request(shared, message, id):
    peer = shared
    peer.send(message)
    answer = peer.next()
    assert (answer["id"], answer["error"]["code"]) == (id, -32600)
    assert answer["error"]["data"]["kind"] == "invalidRequest"
    peer.alive()


def test_a_batch_is_answered_in_one_array_in_ndjson_and_refused_in_lsp(shared, framing):
    peer = shared
    ping = {"jsonrpc": "2.0", "method": "server/ping", "params": {"echo": 1}}
    note = {
        "jsonrpc": "2.0",
        "method": "event/ack",
        "params": {"subscriptionId": "s", "cursor": "b"},
    }
    peer.send([{**ping, "id": 1}, note, {**ping, "id": 2, "method": "no/such"}, 5])
    answer = peer.next()
    if framing == "lsp":
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    else:
        by_id = {a["id"]: a.get("error", {}).get("code") for a in answer}
        assert by_id == {1: None, 2: -32601, None: -32600}
        peer.send([])
        assert peer.next()["error"]["code"] == -32600
        peer.send([note])  # nothing to answer: the next thing that comes is the answer to the ping
    peer.alive()
    assert peer.aside == []


# -- unknown method; unknown $/


def test_an_unknown_method_is_named_and_unknown_notifications_are_ignored(shared):
    peer = shared
    peer.tell("$/unknown", {"x": 1})
    peer.tell("no/such", {"x": 1})
    peer.ask(1, "no/such", {"x": 1})
    assert peer.next()["error"]["code"] == -32601
    peer.ask(2, "$/unknown")
    assert peer.next()["error"]["code"] == -32601
    peer.ask(3, "event/batch", {})  # a method of the other direction
    assert peer.next()["error"]["code"] == -32601
    peer.ask(4, "model/list", {})  # in the table, not offered by this server
    assert peer.next()["error"]["code"] == -32601


# -- params


@pytest.mark.parametrize(
    ("params", "path"),
    [
        (None, "$.sessionId"),
        ({"sessionId": "ses_1"}, "$.content"),
        ({"sessionId": 5, "content": []}, "$.sessionId"),
        ({"sessionId": "ses_1", "content": [{"type": "text", "text": 5}]}, "$.content[0].text"),
        ({"sessionId": "ses_1", "content": [], "limits": {"turns": "12"}}, "$.limits.turns"),
        ([1, 2], "$"),
        ("text", "$"),
    ],
)
def test_missing_or_wrong_params_are_invalid_params_that_name_the_path(shared, params, path):
    peer = shared
    peer.ask(1, "session/prompt", params)
    error = peer.answer(1)["error"]
    assert error["code"] == -32602
    assert error["data"]["errors"][0]["path"].startswith(path)
    assert error["data"]["errors"][0]["message"]
    peer.alive()


def test_missing_and_null_params_are_empty_params(shared):
    peer = shared
    peer.ask(1, "server/ping")
    assert peer.answer(1)["result"]["head"] == "st:0"
    peer.send({"jsonrpc": "2.0", "id": 2, "method": "server/ping", "params": None, "extra": 1})
    assert peer.answer(2)["result"]["head"] == "st:0"


def test_a_wrong_notification_is_dropped_and_never_answered(start):
    peer = start()
    peer.tell("event/ack", {"cursor": 5})
    peer.tell("event/ack", [1])
    assert peer.call(1, "report")["notes"] == []
    assert peer.aside == []


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


# -- handlers that fail


def test_a_handler_that_raises_shows_a_correlation_id_and_logs_its_traceback_redacted(start):
    peer = start()
    error = peer.call(1, "fail")
    assert error["code"] == -32603
    assert "inner detail" not in json.dumps(error)
    assert "Traceback" not in json.dumps(error)
    peer.close()
    peer.drain.join(PATIENCE)
    log = peer.stderr.decode()
    assert error["data"]["correlationId"] in log
    assert "inner detail [redacted]" in log
    assert "sk-probe-secret" not in log


@pytest.mark.parametrize(
    ("act", "code"),
    [
        ("failGroup", -31101),
        ("late", -31004),
        ("leave", -32603),
        ("stray", -32603),
        ("set", -32603),
    ],
)
def test_every_way_in_which_a_handler_fails_is_an_answer(shared, act, code):
    peer = shared
    error = peer.call(1, act)
    assert error["code"] == code
    assert "sk-probe-secret" not in json.dumps(error)
    peer.alive()


@pytest.mark.parametrize(
    ("act", "answer"),
    [("nan", None), ("surrogate", "half � end"), ("fragment", {"raw": True})],
)
def test_a_result_is_valid_json_whatever_it_was(shared, act, answer):
    assert shared.call(1, act) == answer


def test_interrupts_72_half_a_surrogate_pair_of_a_client_is_replaced(shared):
    peer = shared
    peer.body(b'{"jsonrpc":"2.0","id":1,"method":"server/ping","params":{"echo":"a\\ud83db"}}')
    assert peer.answer(1)["result"]["echo"] == "a�b"


# -- ids and cancelling


def test_the_same_id_twice_in_flight_is_refused_and_the_first_goes_on(shared):
    peer = shared
    peer.do(7, "block")
    peer.do(7, "report")
    assert peer.answer(7)["error"]["code"] == -32600
    peer.tell("$/cancelRequest", {"id": 7})
    assert peer.answer(7)["error"]["code"] == -32800
    peer.ask(7, "server/ping")
    assert "result" in peer.answer(7)


def test_a_string_and_an_integer_are_two_ids(shared):
    peer = shared
    peer.do("7", "block")
    peer.ask(7, "server/ping")
    assert "result" in peer.answer(7)
    peer.tell("$/cancelRequest", {"id": "7"})
    assert peer.answer("7")["error"]["code"] == -32800


def test_a_cancelled_request_is_answered_and_cancels_itself_only(start):
    peer = start()
    peer.do(1, "block")
    peer.do(2, "block")
    peer.alive()
    for params in ({"id": 99}, {"id": None}, {"id": {}}, {}, [1], None):
        peer.tell("$/cancelRequest", params)
    peer.tell("$/cancelRequest", {"id": 1})
    error = peer.answer(1)["error"]
    assert (error["code"], error["data"]["kind"]) == (-32800, "requestCancelled")
    report = peer.call(3, "report")
    assert report["outcomes"] == {"1": "stopped"}
    assert report["inFlight"] == 2


def test_a_request_that_is_cancelled_before_it_begins_never_begins(start):
    peer = start()
    cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}
    block = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "server/ping",
        "params": {"echo": {"do": "block"}},
    }
    peer.raw(b"".join(peer.encode(json.dumps(m).encode()) for m in (block, cancel)))
    assert peer.answer(1)["error"]["code"] == -32800
    assert peer.call(2, "report")["outcomes"] == {}


def test_a_request_that_finishes_in_spite_of_its_cancellation_gives_its_result(start):
    peer = start()
    peer.do(1, "shielded")
    peer.alive()
    peer.tell("$/cancelRequest", {"id": 1})
    peer.call(2, "release")
    assert peer.answer(1)["result"]["echo"] == "finished"


def test_more_than_256_requests_in_flight_are_overloaded_and_can_be_tried_again(start):
    peer = start()
    for index in range(257):
        peer.do(index, "block")
    error = peer.answer(256)["error"]
    assert (error["code"], error["data"]["kind"]) == (-31004, "overloaded")
    assert error["data"]["retryAfterMs"] > 0
    peer.tell("$/cancelRequest", {"id": 0})
    assert peer.answer(0)["error"]["code"] == -32800
    peer.alive()
    peer.ask("bye", "shutdown")
    assert "result" in peer.answer("bye")


def test_a_burst_of_quick_requests_is_not_taken_for_requests_in_flight(shared):
    peer = shared
    ping = {"jsonrpc": "2.0", "method": "server/ping"}
    frames = [peer.encode(json.dumps({**ping, "id": f"b{i}"}).encode()) for i in range(3000)]
    peer.raw(b"".join(frames))
    for index in range(3000):
        message = peer.next()
        assert message["id"] == f"b{index}"
        assert "result" in message


# -- order


def test_requests_and_notifications_start_in_the_order_in_which_they_came(start):
    peer = start()
    for index in range(50):
        peer.ask(index, "server/ping", {"echo": index})
        peer.tell("event/ack", {"subscriptionId": "s", "cursor": str(index)})
    report = peer.call("r", "report")
    assert report["order"] == [*range(50), "r"]
    assert report["notes"] == [str(index) for index in range(50)]


def prompt(text, **more):
    content = [{"type": "text", "text": text}]
    return {"sessionId": "ses_1", "content": content, **more}


def test_keyed_requests_keep_the_order_although_their_keys_are_looked_up(start):
    peer = start()
    for index in range(10):
        keyed = {"idempotencyKey": f"k{index}"} if index % 2 == 0 else {}
        peer.ask(index, "session/prompt", prompt(f"p{index}", **keyed))
    for index in range(10):
        peer.answer(index)
    assert peer.call("r", "report")["order"] == [*[f"p{index}" for index in range(10)], "r"]


def test_a_key_that_comes_again_gives_the_first_answer_and_other_params_a_conflict(start):
    peer = start()
    peer.ask(1, "session/prompt", prompt("once", idempotencyKey="k"))
    first = peer.answer(1)["result"]
    peer.ask(2, "session/prompt", prompt("once", idempotencyKey="k"))
    assert peer.answer(2)["result"] == first == {"order": ["once"]}
    peer.ask(3, "session/prompt", prompt("other", idempotencyKey="k"))
    assert peer.answer(3)["error"]["code"] == -31007


def test_the_reply_comes_before_any_event_that_names_its_id(shared):
    peer = shared
    peer.do(1, "announce")
    assert peer.next()["result"]["echo"] == "made"
    assert peer.next()["params"] == {"id": "made"}
    peer.do(2, "announceAndFail")
    assert peer.next()["error"]["code"] == -31101
    peer.alive()
    assert peer.aside == []


def test_what_one_request_sets_in_its_context_no_other_sees(shared):
    peer = shared
    assert [peer.call(index, "mark") for index in range(3)] == ["clean"] * 3


# -- headers and lines


@pytest.mark.parametrize("framing", ["lsp"], indirect=True)
@pytest.mark.parametrize(
    "header",
    [
        b"content-length: %d\r\n\r\n",
        b"CONTENT-LENGTH:%d\n\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        b"X-Unknown: y\nContent-Length: %d\nAnother: z\n\n",
        b"\r\nContent-Length: %d\r\n\r\n",
    ],
)
def test_header_names_in_any_case_lf_and_unknown_headers_are_accepted(shared, header):
    peer = shared
    body = b'{"jsonrpc":"2.0","id":1,"method":"server/ping","params":{"echo":"\xc3\xa9"}}'
    for byte in header % len(body) + body:
        peer.raw(bytes([byte]))
    assert peer.answer(1)["result"]["echo"] == "é"


@pytest.mark.parametrize("framing", ["lsp"], indirect=True)
@pytest.mark.parametrize(
    "broken",
    [
        b'Content-Length: 5\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"server/ping"}\r\n',
        b'Content-Length: 999\r\n\r\n{"a":1}Content-Length: 7\r\n\r\n{"a":1}',
        b"Content-Length: 1000000000000000\r\n\r\n{}",
        b"Content-Type: x\r\n\r\n",
        b"garbage\r\n",
        b"X" * 9000,
    ],
)
def test_a_stream_that_lost_its_framing_is_reported_and_ends_the_process(start, broken):
    peer = start()
    peer.raw(broken)
    last = peer.rest()[-1]
    assert (last["id"], last["error"]["code"]) == (None, -32700)
    assert "framing" in last["error"]["message"]
    assert peer.ends() == 1


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b" \r\n\n"])
def test_the_framing_is_found_behind_blanks_and_a_byte_order_mark(start, before):
    peer = start(opened=False)
    peer.raw(before)
    peer.open()
    peer.alive()


@pytest.mark.parametrize("framing", ["ndjson"], indirect=True)
def test_a_last_line_without_its_end_is_heard_and_answered_before_the_end(start):
    peer = start(opened=False)
    first = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
    peer.raw(first + b'{"jsonrpc":"2.0","id":2,"method":"server/ping"}')
    peer.process.stdin.close()
    assert [m["id"] for m in peer.rest()] == [1, 2]
    assert peer.ends() == 0


# -- frames over the limit


@pytest.mark.parametrize(
    ("start_of_body", "id"),
    [(b'{"jsonrpc":"2.0","id":9,', 9), (b'{"jsonrpc":"2.0",', None)],
)
def test_a_frame_over_the_limit_alone_is_skipped_and_answered(start, start_of_body, id):
    peer = start(frameLimit=100_000)
    body = start_of_body + b'"method":"server/ping","params":{"echo":"' + b"x" * 300_000 + b'"}}'
    peer.body(body)
    answer = peer.next()
    assert (answer["id"], answer["error"]["data"]["kind"]) == (id, "messageTooLarge")
    assert answer["error"]["code"] == -31006
    assert answer["error"]["data"]["limit"] == 100_000
    peer.alive()


def test_a_first_frame_over_the_limit_is_answered_too(start):
    peer = start(opened=False, frameLimit=1000)
    peer.body(b'{"jsonrpc":"2.0","id":1,"method":"initialize","x":"' + b"x" * 5000 + b'"}')
    assert peer.answer(1)["error"]["code"] == -31006
    peer.open()


def test_a_megabyte_is_echoed_whole(shared):
    peer = shared
    text = "é" * 1_000_000
    peer.ask(1, "server/ping", {"echo": text})
    assert peer.answer(1)["result"]["echo"] == text


# -- nested keys


def test_keys_that_look_like_the_protocol_are_untouched_inside_params(shared):
    peer = shared
    echo = {
        "jsonrpc": "2.0", "id": 1, "method": "m", "params": {"jsonrpc": "1.0"}, "_meta": {"a": None},
        "class": "x", "b c": 1, "type_name": "T", "do_not": [{"jsonrpc": "2.0", "result": None}],
    }  # fmt: skip
    peer.ask(1, "server/ping", {"echo": echo, "unknownField": {"jsonrpc": "2.0"}})
    assert peer.answer(1)["result"]["echo"] == echo


# -- a client that does not read


def test_a_client_that_stops_reading_does_not_stop_the_loop_and_loses_nothing(start):
    peer = start()
    peer.reading.clear()
    peer.do(1, "flood", count=200, bytes=20_000)
    for index in range(2, 12):
        peer.ask(index, "server/ping", {"echo": {"do": "report"}})
    peer.tell("event/ack", {"subscriptionId": "s", "cursor": "heard"})
    peer.reading.set()
    peer.do("last", "report")
    last = peer.answer("last")["result"]["echo"]
    assert last["notes"] == ["heard"]
    floods = [m["params"]["index"] for m in peer.aside if "params" in m]
    assert floods == list(range(200))
    ids = [m["id"] for m in peer.aside if "id" in m]
    assert ids == list(range(1, 12))


def test_both_sides_may_write_at_once(start):
    """A client that writes 20 MB before it reads anything: the classic deadlock of two pipes."""
    peer = start()
    peer.reading.clear()
    text = "x" * 100_000
    for index in range(200):
        peer.ask(index, "server/ping", {"echo": text})
    peer.reading.set()
    for index in range(200):
        assert "result" in peer.answer(index)


def test_deltas_are_merged_while_the_client_is_slow_and_dropped_when_it_is_too_slow(start):
    peer = start(limits={"outbound_frames": 20})
    peer.reading.clear()
    peer.do(1, "flood", count=1, bytes=1_000_000)
    peer.do(2, "stream", count=100, bytes=10)
    peer.do(3, "flood", count=20, bytes=10)
    peer.do(4, "stream", count=10, bytes=10)
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


# -- requests of the server


def asked(peer):
    message = peer.next()
    assert message["method"] in ("client/readFile", "workspace/applyEdit"), message
    return message["id"]


def reply(peer, id, **fields):
    peer.send({"jsonrpc": "2.0", "id": id, **fields})


def test_a_request_of_the_server_gets_its_typed_answer(shared):
    peer = shared
    peer.do(1, "ask")
    reply(peer, asked(peer), result={"text": "hello", "version": 3})
    assert peer.answer(1)["result"]["echo"] == {"text": "hello"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"error": {"code": -5, "message": "no"}}, -5),
        ({"result": {"text": 5}}, -32602),
        ({"result": None}, -32602),
    ],
)
def test_an_error_or_a_result_of_the_wrong_shape_reaches_who_asked(shared, fields, code):
    peer = shared
    peer.do(1, "ask")
    reply(peer, asked(peer), **fields)
    assert peer.answer(1)["result"]["echo"]["peerError"] == code


def test_answers_that_are_foreign_malformed_double_or_late_are_ignored(shared):
    peer = shared
    peer.do(1, "ask")
    id = asked(peer)
    for foreign in (id + 1000, str(id)):
        reply(peer, foreign, result={"text": "forged"})
    reply(peer, id, error="not an object")
    reply(peer, id, result={"text": "both"}, error={"code": 1, "message": "m"})
    reply(peer, id, result={"text": "real"})
    reply(peer, id, result={"text": "double"})
    assert peer.answer(1)["result"]["echo"] == {"text": "real"}
    peer.alive()
    assert peer.aside == []


def test_a_request_that_is_not_answered_in_time_is_cancelled_and_its_late_answer_ignored(shared):
    peer = shared
    peer.do(1, "ask", timeout=0.05)
    id = asked(peer)
    assert peer.next() == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}
    assert peer.answer(1)["result"]["echo"] == "timeout"
    reply(peer, id, result={"text": "late"})
    peer.alive()


def test_a_clients_id_never_meets_an_id_of_ours(shared):
    peer = shared
    peer.do(1, "ask")
    id = asked(peer)
    peer.tell("$/cancelRequest", {"id": "nobody"})
    peer.do(id + 1, "report")
    assert "result" in peer.answer(id + 1)
    reply(peer, id, result={"text": "mine"})
    assert peer.answer(1)["result"]["echo"] == {"text": "mine"}


def test_an_answer_over_the_limit_fails_the_request_that_waits_for_it(start):
    peer = start(frameLimit=10_000)
    peer.do(1, "ask")
    reply(peer, asked(peer), result={"text": "x" * 20_000})
    assert peer.answer(1)["result"]["echo"]["peerError"] == -31006
    peer.alive()


def test_a_cancelled_request_cancels_what_it_asked_of_the_client(shared):
    peer = shared
    peer.do(1, "ask")
    id = asked(peer)
    peer.tell("$/cancelRequest", {"id": 1})
    assert peer.next()["params"] == {"id": id}
    assert peer.answer(1)["error"]["code"] == -32800


# -- stdout belongs to the frames


def test_interrupts_70_nothing_that_is_printed_reaches_the_wire(start):
    peer = start()
    assert peer.call(1, "print") == "True"  # a child's stdin is empty
    peer.alive()
    assert peer.aside == []
    peer.close()
    peer.drain.join(PATIENCE)
    for who in ("python", "a library", "a child"):
        assert f"printed by {who}" in peer.stderr.decode()


def test_interrupts_70_children_do_not_inherit_the_wire(shared):
    assert shared.call(1, "inherited") == "[]"


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


def test_a_process_that_cannot_end_is_ended(start):
    peer = start(limits={"last_resort_seconds": 0.2, "answer_seconds": 0.1})
    peer.do(1, "shielded")
    peer.alive()
    peer.tell("exit")
    assert peer.ends() == 1


# -- LSP's own messages


OPENED = {"uri": "file:///w/a.txt", "languageId": "text", "version": 1, "text": "one\ntwo 😀 x\n"}


@pytest.mark.parametrize("framing", ["lsp"], indirect=True)
class TestLsp:
    def test_unsaved_text_is_what_the_editor_shows(self, start):
        peer = start()
        uri = {"uri": OPENED["uri"]}
        assert peer.call(1, "document", **uri) is None
        peer.tell("textDocument/didOpen", {"textDocument": OPENED})
        place = {"line": 1, "character": 7}  # behind the emoji, which is two UTF-16 units
        peer.tell(
            "textDocument/didChange",
            {
                "textDocument": {**uri, "version": 2},
                "contentChanges": [
                    {"range": {"start": place, "end": {"line": 1, "character": 8}}, "text": "y"},
                    {"range": {"start": {"line": 0, "character": 0}, "end": place}, "text": "Z"},
                ],
            },
        )
        assert peer.call(2, "document", **uri) == ["Zy\n", 2]
        peer.tell("textDocument/didSave", {"textDocument": uri})
        peer.tell("textDocument/didClose", {"textDocument": uri})
        assert peer.call(3, "document", **uri) is None
        assert peer.call(4, "report")["notes"] == [["saved", OPENED["uri"]]]

    def test_positions_are_utf_16_whatever_else_the_client_offers(self, start):
        peer = start(opened=False)
        peer.open(capabilities={"general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]}})
        peer.tell("textDocument/didOpen", {"textDocument": OPENED})
        change = {
            "range": {"start": {"line": 1, "character": 6}, "end": {"line": 1, "character": 8}},
            "text": "!",
        }
        peer.tell(
            "textDocument/didChange",
            {"textDocument": {"uri": OPENED["uri"], "version": 2}, "contentChanges": [change]},
        )
        assert peer.call(1, "document", uri=OPENED["uri"]) == ["one\ntwo 😀!\n", 2]

    def test_one_document_is_found_under_every_spelling_of_its_uri(self, start):
        peer = start()
        document = {**OPENED, "uri": "file:///d%3A/a%20b.txt"}
        peer.tell("textDocument/didOpen", {"textDocument": document})
        assert peer.call(1, "document", uri="file:///D:/a b.txt") == [OPENED["text"], 1]

    def test_what_is_wrong_or_not_open_is_dropped(self, start):
        peer = start()
        peer.tell("textDocument/didOpen", {"textDocument": {"uri": 5}})
        peer.tell("textDocument/didOpen", [1])
        peer.tell("textDocument/didOpen")
        peer.tell(
            "textDocument/didChange",
            {
                "textDocument": {"uri": PROBE.as_uri(), "version": 2},
                "contentChanges": [{"text": "not open"}],
            },
        )
        assert peer.call(1, "document", uri=PROBE.as_uri()) is None
        peer.alive()
        assert peer.aside == []

    def test_settings_folders_trace_and_progress_reach_the_host(self, start):
        peer = start(opened=False)
        peer.open(workspaceFolders=[{"uri": "file:///w", "name": "w"}])
        peer.tell("$/setTrace", {"value": "verbose"})
        peer.tell("workspace/didChangeConfiguration", {"settings": {"callboard": {"class": 1}}})
        added = [{"uri": "file:///v", "name": "v"}]
        peer.tell("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": []}})
        peer.tell("window/workDoneProgress/cancel", {"token": "t1"})
        peer.call(1, "document", uri="file:///none")  # waits until all of it was acted upon
        assert peer.call(2, "report")["notes"] == [
            ["configuration", {"callboard": {"class": 1}}],
            ["folders", ["file:///w", "file:///v"]],
            ["progress", "t1"],
        ]

    def test_a_line_for_the_output_window_is_typed(self, start):
        peer = start()
        peer.call(1, "log", text="hello")
        note = peer.next()
        assert note["method"] == "window/logMessage"
        assert note["params"] == {"type": 3, "message": "hello"}

    def test_an_edit_is_asked_for_and_its_outcome_typed(self, start):
        peer = start()
        place = {"line": 0, "character": 0}
        change = {"range": {"start": place, "end": place}, "newText": "x"}
        edit = {"changes": {"file:///w/a.txt": [change]}}
        peer.do(1, "edit", edit=edit)
        message = peer.next()
        assert message["method"] == "workspace/applyEdit"
        assert message["params"] == {"label": "probe", "edit": edit}
        reply(peer, message["id"], result={"applied": False, "failureReason": "stale"})
        assert peer.answer(1)["result"]["echo"] == [False, "stale"]

    def test_pygls_is_imported_only_once_a_message_needs_it(self, start):
        peer = start()
        assert peer.call(1, "report")["heavy"] == []
        peer.tell("textDocument/didOpen", {"textDocument": OPENED})
        peer.call(2, "document", uri=OPENED["uri"])
        assert peer.call(3, "report")["heavy"] == ["lsprotocol", "pygls"]
