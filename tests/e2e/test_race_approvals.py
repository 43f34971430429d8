"""Two clients in two processes answer the same approvals at once: one wins each, the other is told how."""

import random
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness.process import ServerProcess, scenario

CALLS = 10
"""Approvals that wait at once in a session."""
WAVE = 50
"""Answers that each client has under way at once."""
COMMAND = "echo $CALLBOARD_CALL >> ran.txt"


def _scene(folder: Path) -> str:
    call = f'{{call: {{tool: run_command, arguments: {{command: "{COMMAND}"}}}}}}'
    answer = ", ".join([call] * CALLS)
    return scenario(
        folder,
        "rules:\n"
        "  - when: {last_tool: {name: run_command}}\n"
        "    answer: [{say: done}]\n"
        "default:\n"
        f"  [{answer}]\n",
    )


def _outcome(server: ServerProcess, request_id: int) -> dict[str, Any]:
    """The answer to a request, whether it was read already or is still to come."""
    for message in server.seen:
        if message.get("id") == request_id and "method" not in message:
            return message
    return server.until(lambda m: m.get("id") == request_id and "method" not in m)


@pytest.mark.parametrize(
    "count",
    [100, pytest.param(1_000, marks=[pytest.mark.soak, pytest.mark.timeout(900)])],
)
def test_coordination_70_of_two_answers_in_two_processes_one_wins_and_the_call_runs_as_it_says(
    tmp_path: Path, count: int
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    chance = random.Random(count)
    with ExitStack() as stack:
        model = _scene(tmp_path)
        allowing, rejecting = (
            stack.enter_context(
                ServerProcess(tmp_path, model=model, client_id=name, approvals=False)
            )
            for name in ("allowing", "rejecting")
        )
        sessions: list[str] = []
        for number in range(count // CALLS):
            owner = (allowing, rejecting)[number % 2]
            sessions.append(owner.create(work, mode="work"))
            owner.prompt(sessions[-1], "go")
        approvals: list[str] = []
        for session in sessions:
            waited = allowing.wait(session, "attention")
            approvals += [a["approvalId"] for a in waited["approvals"]]
        assert len(approvals) == count
        chance.shuffle(approvals)

        told: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        for start in range(0, count, WAVE):
            wave = approvals[start : start + WAVE]
            asked: dict[str, dict[ServerProcess, int]] = {approval: {} for approval in wave}
            for approval in wave:
                both = [(allowing, "allow_once"), (rejecting, "reject_once")]
                chance.shuffle(both)
                for server, option in both:
                    asked[approval][server] = server.request(
                        "approval/answer", approvalId=approval, optionId=option
                    )
            for approval, ids in asked.items():
                told[approval] = (
                    _outcome(allowing, ids[allowing]),
                    _outcome(rejecting, ids[rejecting]),
                )
        for session in sessions:
            allowing.wait(session)
        logs = [event for session in sessions for event in rejecting.events(session)]

    decided = Counter(e["data"]["approvalId"] for e in logs if e["type"] == "approval_decision")
    assert decided == Counter(approvals)
    calls = {
        e["data"]["approval"]["approvalId"]: e["data"]["approval"]["callId"]
        for e in logs
        if e["type"] == "approval_request"
    }
    results = {e["data"]["callId"]: e["data"]["status"] for e in logs if e["type"] == "tool_result"}
    assert len(results) == sum(e["type"] == "tool_result" for e in logs) == count
    ran = Counter((work / "ran.txt").read_text().split() if (work / "ran.txt").exists() else ())
    wins: Counter[str] = Counter()
    for approval, (allow, reject) in told.items():
        winner, loser = (allow, reject) if "result" in allow else (reject, allow)
        resolution = winner["result"]["approval"]["resolution"]
        assert loser["error"]["data"]["kind"] == "alreadyResolved", loser
        assert loser["error"]["data"]["resolution"] == resolution
        allowed = winner is allow
        assert resolution["outcome"] == ("allowed" if allowed else "rejected")
        assert resolution["by"]["id"] == ("allowing" if allowed else "rejecting")
        assert results[calls[approval]] == ("ok" if allowed else "denied")
        assert ran[calls[approval]] == (1 if allowed else 0)
        wins[resolution["outcome"]] += 1
    assert sum(ran.values()) == wins["allowed"], "nothing else ran"
    print(f"of {count} approvals {dict(wins)}")
