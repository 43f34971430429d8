"""Rows of PROTOCOL 1's table and of specs/limits 1.3: requests of the server to its client."""

import pytest
from wire_peer import reply


def asked(peer):
    message = peer.next()
    assert message["method"] in ("client/readFile", "workspace/applyEdit"), message
    return message["id"]


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
