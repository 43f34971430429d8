"""JSON at the edge, and what a client may see of an exception."""

import json
import logging

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.rpc import codec
from callboard.rpc.fault import Faults, unwrap
from callboard_rpc.convert import StructureError
from callboard_rpc.errors import CallboardError
from callboard_rpc.server import PingResult

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_what_is_encoded_is_decoded_untouched(value):
    assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize(
    "body", [b"{", b"nul", b"\xff", b'"\xed\xa0\xbd"', b"NaN", b"[" * 100_000, b'{"a":"\\ud83d",}']
)
def test_what_is_not_json_is_refused(body):
    with pytest.raises(codec.NotJson):
        codec.decode(body)


def test_interrupts_72_half_a_surrogate_pair_is_replaced_on_the_way_in_and_out():
    assert codec.decode(b'{"t":"a\\ud83db","p":"\\ud83d\\ude00"}') == {"t": "a�b", "p": "😀"}
    assert codec.decode(codec.encode({"t": "a\udc00b"})) == {"t": "a�b"}


def test_a_nan_beside_half_a_surrogate_pair_is_still_no_json():
    with pytest.raises(codec.NotJson):
        codec.decode(b'["\\ud83d", NaN]')


numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**400]),
).map(str) | st.sampled_from(
    ["-0", "1e400", "-1e400", "1e-400", "1.5", "1E2", "01", "+1", "1.", "1" + "0" * 5000]
)


@given(numbers)
def test_a_number_is_the_same_beside_half_a_surrogate_pair(number):
    """Two readers have to agree: what only one of them takes cannot be answered."""

    def read(text):
        try:
            return codec.decode(b"[%b,%b]" % (text, number.encode()))[1]
        except codec.NotJson:
            return codec.NotJson

    plain, beside = read(b'"a"'), read(b'"\\ud83d"')
    assert (type(plain), plain) == (type(beside), beside)


def nested(levels, innermost=b""):
    return b'{"a":[' * (levels // 2) + innermost + b"]}" * (levels // 2)


@pytest.mark.parametrize("innermost", [b"", b'"\\ud83d"'])
def test_what_nests_too_deeply_to_be_written_again_is_not_read(innermost):
    value = codec.decode(nested(codec.MAX_DEPTH, innermost))
    assert codec.encode({"jsonrpc": "2.0", "params": {"events": [{"data": {"metadata": value}}]}})
    for levels in (codec.MAX_DEPTH + 2, 300):
        with pytest.raises(codec.TooDeep):
            codec.decode(nested(levels, innermost))


def test_brackets_without_depth_are_no_depth():
    assert codec.decode(b"[" + b"[]," * 10_000 + b"{}]")
    assert codec.decode(b'"' + b"[" * 10_000 + b'"')


def test_a_byte_order_mark_before_a_body_is_tolerated():
    assert codec.decode(b"\xef\xbb\xbf[1]") == [1]


def test_attrs_and_fragments_may_stand_anywhere_in_a_result():
    result = {"page": [PingResult(at="t", head="h", echo=orjson.Fragment(b"[1]"))]}
    assert json.loads(codec.encode(result)) == {"page": [{"at": "t", "head": "h", "echo": [1]}]}


@pytest.mark.parametrize("value", [{1, 2}, object(), b"bytes", {"a": {1}}])
def test_what_json_has_no_form_for_is_refused_before_anything_is_sent(value):
    with pytest.raises(codec.NotSerialisable):
        codec.encode(value)


@pytest.fixture
def faults():
    return Faults(lambda text: text.replace("hunter2", "[redacted]"))


def of(faults, fault):
    return faults.error(fault, correlation_id="c1", method="m")


def test_an_unknown_exception_shows_only_its_correlation_id(faults, caplog):
    try:
        raise ValueError("hunter2 in /home/x")
    except ValueError as fault:
        with caplog.at_level(logging.ERROR, "callboard.rpc"):
            error = of(faults, fault)
    assert error["code"] == -32603
    assert error["data"]["correlationId"] == "c1"
    assert "hunter2" not in json.dumps(error)
    assert "/home/x" not in json.dumps(error)
    assert "c1" in caplog.text
    assert "Traceback" in caplog.text
    assert "ValueError: [redacted] in /home/x" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_known_error_is_passed_on_redacted(faults):
    error = of(faults, CallboardError("sessionNotFound", "no session hunter2"))
    assert error["code"] == -31101
    assert error["message"] == "no session [redacted]"
    assert error["data"]["kind"] == "sessionNotFound"


def test_groups_with_a_single_member_are_unwrapped(faults):
    inner = CallboardError("sessionNotFound", "no session")
    assert of(faults, ExceptionGroup("a", [ExceptionGroup("b", [inner])]))["code"] == -31101
    both = ExceptionGroup("a", [inner, inner])
    assert unwrap(both) is both
    assert of(faults, both)["code"] == -32603


def test_a_time_out_is_an_error_of_its_own_that_can_be_tried_again(faults):
    error = of(faults, TimeoutError())
    assert error["data"]["kind"] == "overloaded"
    assert error["data"]["retryable"] is True
    assert error["data"]["retryAfterMs"] > 0


def test_wrong_params_name_each_path(faults):
    error = of(faults, StructureError([{"path": "$.a", "message": "is required"}]))
    assert error["code"] == -32602
    assert error["data"]["errors"] == [{"path": "$.a", "message": "is required"}]
