"""Answers that ask for very many tool calls at once, over the wire."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.invariants import check_session
from harness.process import ServerProcess, scenario, types

LIMIT = 256


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def _answer(count: int, *, command_every: int) -> str:
    """`count` calls, as the lines of a scenario: reads, and every so often a command."""
    lines: list[str] = []
    for n in range(count):
        if n % command_every == 0:
            lines.append(
                f"  - call: {{tool: run_command, arguments: {{command: echo {n} >> ran.txt}}}}"
            )
        else:
            lines.append("  - call: {tool: list_files, arguments: {path: .}}")
    return "\n".join(lines)


def _turn(folder: Path, work: Path, rules: str, answer: str) -> list[dict[str, Any]]:
    """The log of a session with one turn, in which the model gives `answer`, and says one thing more."""
    again = '  - {when: {last_user: "done?"}, answer: [{say: Yes.}]}'
    text = f"rules:\n{again}\n{rules}\ndefault:\n  - say: I begin.\n{answer}\n"
    model = scenario(folder, text)
    allowed = {"config": {"approvals": {"policy": {"execute": "allow"}}}}
    with ServerProcess(folder, model=model, callboard=allowed) as server:
        session_id = server.create(work)
        server.prompt(session_id, "go")
        assert server.wait(session_id)["turn"]["state"] == "completed"
        events = server.events(session_id)
        check_session(session_id, events)
        server.prompt(session_id, "done?")
        assert server.wait(session_id)["turn"]["state"] == "completed"  # what came of it is context
    return events


def _calls(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [e for e in events if e["type"] == "tool_call"]


def _results(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The results by their call. Each call has one, behind it."""
    found = [e for e in events if e["type"] == "tool_result"]
    begun = {e["data"]["callId"]: e["seq"] for e in _calls(events)}
    assert Counter(e["data"]["callId"] for e in found) == Counter(list(begun))
    assert [e for e in found if e["seq"] < begun[e["data"]["callId"]]] == []
    return {e["data"]["callId"]: e["data"] for e in found}


def test_messaging_18_of_200_fast_calls_none_is_lost_the_ack_comes_first_and_the_end_last(
    tmp_path: Path, work: Path
) -> None:
    rules = "  - {when: {last_tool: {contains: ''}}, answer: [{say: All done.}]}"
    events = _turn(tmp_path, work, rules, _answer(200, command_every=10))
    order = types(events)
    assert order.index("ack") < order.index("tool_call")
    assert order[-1] == "turn_finished"
    results = _results(events)
    assert len(results) == 200
    assert [each for each in results.values() if each["status"] != "ok"] == []
    assert (work / "ran.txt").read_text().split() == [str(n) for n in range(0, 200, 10)]


def test_messaging_18_calls_beyond_the_limit_of_one_answer_are_not_run_and_the_model_is_told(
    tmp_path: Path, work: Path
) -> None:
    """They are calls like any other: in the log, with one result each, in the next request."""
    told = f"Not run: at most {LIMIT} calls in one answer; ask for the rest again."
    rules = f'  - {{when: {{last_tool: {{contains: "{told}"}}}}, answer: [{{say: I ask again.}}]}}'
    events = _turn(tmp_path, work, rules, _answer(LIMIT + 44, command_every=LIMIT))
    results = _results(events)
    said = [block for e in events if e["type"] == "message" for block in e["data"]["content"]]
    placed = [block["callId"] for block in said if block["type"] == "tool_use"]
    assert placed == [e["data"]["callId"] for e in _calls(events)] == list(dict.fromkeys(placed))
    outcomes = [(results[each]["status"], results[each]["text"]) for each in placed]
    assert [status for status, _ in outcomes[:LIMIT]] == ["ok"] * LIMIT
    assert outcomes[LIMIT:] == [("error", told)] * 44
    assert (work / "ran.txt").read_text() == "0\n"  # not the 257th, which is a command too
    assert events[-1]["data"]["finalText"] == "I ask again."
