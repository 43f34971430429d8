"""Rows of PROTOCOL 1's table and of specs/limits 1.3: requests, their order and their ends."""

import json

import pytest
from wire_peer import PATIENCE

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
        ("unsayable", -32603),
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
