"""The table of PROTOCOL 1: what may be said when, and how the process ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.rpc.lifecycle import Phase, exit_code, hears_notification, judge_request

METHODS = st.sampled_from(["initialize", "shutdown", "server/ping", "session/prompt", "$/x", ""])


@given(METHODS)
def test_before_initialize_only_initialize_may_be_asked(method):
    refusal = judge_request(Phase.NEW, method)
    assert (refusal is None) == (method == "initialize")
    assert refusal is None or refusal.kind == "notInitialized"


@given(METHODS)
def test_a_second_initialize_is_refused_and_everything_else_may_be_asked(method):
    refusal = judge_request(Phase.OPEN, method)
    assert (refusal is not None) == (method == "initialize")
    assert refusal is None or refusal.kind == "invalidRequest"


@given(METHODS)
def test_after_shutdown_nothing_may_be_asked(method):
    refusal = judge_request(Phase.SHUT, method)
    assert refusal is not None
    assert refusal.kind == "invalidRequest"


@given(METHODS)
def test_while_ending_new_work_is_refused(method):
    refusal = judge_request(Phase.ENDING, method)
    assert refusal is not None
    assert refusal.kind == "shuttingDown"


@pytest.mark.parametrize("phase", list(Phase))
def test_exit_is_always_heard(phase):
    assert hears_notification(phase, "exit")


@pytest.mark.parametrize("phase", list(Phase))
def test_notifications_are_heard_only_while_the_conversation_is_open(phase):
    assert hears_notification(phase, "event/ack") == (phase is Phase.OPEN)
    assert hears_notification(phase, "initialized") == (phase is Phase.OPEN)


@pytest.mark.parametrize("phase", list(Phase))
def test_a_cancellation_is_heard_as_long_as_requests_may_run(phase):
    assert hears_notification(phase, "$/cancelRequest") == (phase is not Phase.NEW)


@pytest.mark.parametrize("reason", ["eof", "exit", "parent", "sigterm", "sigint", "desync"])
def test_after_shutdown_the_exit_code_is_0(reason):
    assert exit_code(reason, shutdown_seen=True) == 0


@pytest.mark.parametrize(
    ("reason", "code"),
    [("exit", 1), ("desync", 1), ("eof", 0), ("parent", 0), ("sigterm", 143), ("sigint", 130)],
)
def test_the_exit_code_without_shutdown(reason, code):
    assert exit_code(reason, shutdown_seen=False) == code
