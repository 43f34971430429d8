"""Rows of PROTOCOL 1's table and of specs/limits 1.3: bytes, lines and frames, in a real process over real pipes."""

import pytest
from wire_peer import PATIENCE

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


@pytest.mark.parametrize("framing", ["ndjson"], indirect=True)
def test_a_batch_of_more_than_a_thousand_messages_is_refused_in_one_short_answer(shared):
    peer = shared
    peer.send([1] * 1001)
    answer = peer.next()
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "1000" in answer["error"]["message"]
    peer.send([1] * 1000)
    assert len(peer.next()) == 1000
    peer.alive()


@pytest.mark.parametrize("framing", ["ndjson"], indirect=True)
def test_a_large_batch_of_quick_requests_is_not_taken_for_requests_in_flight(shared):
    peer = shared
    ping = {"jsonrpc": "2.0", "method": "server/ping"}
    peer.send([{**ping, "id": index} for index in range(1000)])
    answers = peer.next()
    assert sorted(answer["id"] for answer in answers) == list(range(1000))
    assert all("result" in answer for answer in answers)


@pytest.mark.parametrize("number", [2**64, 10**29, -(10**29)])
def test_a_number_beyond_64_bits_is_a_float_beside_half_a_surrogate_pair_too(shared, number):
    """One such id ended the server: no answer could be made to it."""
    peer = shared
    for text in (b"a", b"\\ud83d"):
        peer.body(
            b'{"jsonrpc":"2.0","id":%d,"method":"server/ping","params":{"echo":"%b"}}'
            % (number, text)
        )
        answer = peer.next()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        peer.body(
            b'{"jsonrpc":"2.0","id":1,"method":"server/ping","params":{"echo":["%b",%d]}}'
            % (text, number)
        )
        assert peer.answer(1)["result"]["echo"][1] == float(number)
    peer.alive()


def nested(levels):
    return b"[" * levels + b"]" * levels


def test_params_that_nest_too_deeply_are_refused_by_their_own_message(shared, framing):
    peer = shared
    ask = b'{"jsonrpc":"2.0","id":%d,"method":"server/ping","params":{"echo":%b}}'
    peer.body(ask % (1, nested(190)))
    assert peer.answer(1)["result"]["echo"]
    for levels in (210, 300, 1000):
        peer.body(ask % (2, nested(levels)))
        error = peer.answer(2)["error"]
        assert (error["code"], error["data"]["errors"][0]["path"]) == (-32602, "$")
        peer.body(b'{"jsonrpc":"2.0","method":"event/ack","params":{"cursor":%b}}' % nested(levels))
        peer.body(nested(levels))  # in LSP a batch, in ndjson a batch of one that is no message
        answer = peer.next()
        refused = answer if framing == "lsp" else answer[0]
        assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    if framing == "ndjson":
        peer.body(b"[" + ask % (3, b"1") + b"," + ask % (4, nested(300)) + b"]")
        by_id = {a["id"]: a.get("error", {}).get("code") for a in peer.next()}
        assert by_id == {3: None, 4: -32602}
    peer.alive()
    assert peer.aside == []


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
