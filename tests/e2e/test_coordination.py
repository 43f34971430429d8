"""Steering, pairs and retries of specs/coordination.md 15, and order and replay of interrupts 64-66, seen by a client."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from callboard.config.settings import Settings
from callboard.host import builtin_features, builtin_tools
from callboard.tools.registry import ToolRegistry
from fakes.chat_aside import ChatAside, Delta, Messages, calls, text_of
from harness.process import ServerProcess, scenario, types

SCENE = """
rules:
  - when: {system: {contains: "You write the summary"}}
    answer: [{say: "A SUMMARY."}]
  - when: {last_user: {contains: flaky}}
    times: 2
    answer: [{fail: {kind: modelError, message: try again, retryable: true, retry_after_ms: 1}}]
  - when: {last_user: {contains: offline}}
    answer: [{fail: {kind: modelError, message: try again, retryable: true, retry_after_ms: 60000}}]
  - when: {last_tool: {name: run_command}}
    answer: [{say: "Ran it."}]
  - when: {last_user: {contains: many ways}}
    answer:
      - call: {tool: list_files, arguments: {}}
      - call: {tool: no_such_tool, arguments: {}}
      - call: {tool: read_file, arguments: {wrong: 1}}
      - call: {tool: read_file, raw_arguments: "not json"}
      - call: {tool: run_command, arguments: {command: "echo one"}}
      - call: {tool: run_command, arguments: {command: "echo two"}}
  - when: {last_user: {contains: run}}
    answer: [{call: {tool: run_command, arguments: {command: "echo x"}}}]
default: [{say: "Heard."}]
"""


def _window(room: int) -> int:
    """A context window (tokens) that leaves about `room` for the conversation, however many tools there are."""
    registry = ToolRegistry(builtin_tools())
    for feature in builtin_features(Settings()):
        for tool in feature.tools:
            registry.register(tool)
    specs = [[spec.name, spec.description, spec.schema] for spec in registry.specs(None)]
    return room + len(orjson.dumps(specs)) // 4


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    small = {
        "CALLBOARD_CONTEXT_WINDOW_DEFAULT": str(_window(3_700)),
        "CALLBOARD_CONTEXT_RESERVED_OUTPUT": "100",
    }
    with ServerProcess(tmp_path, model=scenario(tmp_path, SCENE), environ=small) as running:
        yield running


def _of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["type"] == kind]


def _asked(server: ServerProcess, session_id: str) -> list[str]:
    waited = server.wait(session_id, "attention")
    return [approval["approvalId"] for approval in waited["approvals"]]


def test_coordination_58_what_is_said_to_a_turn_that_has_ended_begins_the_next(
    server: ServerProcess, work: Path
) -> None:
    session_id = server.create(work)
    server.prompt(session_id, "hello")
    server.wait(session_id)
    late = server.prompt(session_id, "too late for that", delivery="steer")
    assert late["outcome"] == "started"
    server.wait(session_id)
    events = server.events(session_id)
    first, second = _of(events, "ack")
    assert first["admits"] != second["admits"] == [late["eventSeq"]]
    assert types(events).count("turn_finished") == 2


def test_coordination_60_three_steers_are_taken_in_at_one_boundary_in_their_order(
    server: ServerProcess, work: Path
) -> None:
    session_id = server.create(work)
    server.prompt(session_id, "run")
    (approval_id,) = _asked(server, session_id)
    steers = [
        server.prompt(session_id, text, delivery="steer") for text in ("first", "second", "third")
    ]
    assert {steer["outcome"] for steer in steers} == {"steered"}
    server.call("approval/answer", approvalId=approval_id, optionId="allow_once")
    server.wait(session_id)
    events = server.events(session_id)
    assert _of(events, "ack")[1]["admits"] == [steer["eventSeq"] for steer in steers]
    assert types(events).count("turn_started") == 1
    assert [r["status"] for r in _of(events, "tool_result")] == ["superseded"]


def test_coordination_60_three_steers_are_three_messages_in_the_log_and_in_their_order_at_the_model(
    tmp_path: Path, work: Path
) -> None:
    def answer(messages: Messages) -> Delta:
        done = any(message["role"] == "tool" for message in messages)
        return {"content": "Heard."} if done else calls("run_command", command="echo x")

    with ChatAside(answer) as model:
        model.configure(tmp_path / "home" / "config")
        with ServerProcess(tmp_path, model=model.model_id) as server:
            session_id = server.create(work)
            server.prompt(session_id, "run")
            (approval_id,) = _asked(server, session_id)
            for text in ("first", "second", "third"):
                assert server.prompt(session_id, text, delivery="steer")["outcome"] == "steered"
            server.call("approval/answer", approvalId=approval_id, optionId="allow_once")
            assert server.wait(session_id)["turn"]["state"] == "completed"
            said = [
                event["data"]["content"][0]["text"]
                for event in server.events(session_id)
                if event["type"] == "message" and event["data"]["author"]["kind"] == "person"
            ]
    assert said == ["run", "first", "second", "third"]
    before, after = model.asked
    # what the first request held stands before all that is new, unchanged (coordination 66)
    assert after[: len(before)] == before
    new = after[len(before) :]
    # joined where they follow each other, since many servers demand that roles alternate
    assert [message["role"] for message in new] == ["assistant", "tool", "user"]
    assert text_of(new[-1]).split("\n\n") == ["first", "second", "third"]


def test_coordination_61_steers_of_a_cancelled_turn_are_not_lost_but_answered_next(
    server: ServerProcess, work: Path
) -> None:
    session_id = server.create(work)
    server.prompt(session_id, "run")
    _asked(server, session_id)
    steer = server.prompt(session_id, "rather not", delivery="steer")
    server.call("session/cancel", sessionId=session_id)
    server.wait(session_id)
    events = server.events(session_id)
    assert [t["outcome"] for t in _of(events, "turn_finished")] == ["cancelled", "completed"]
    assert _of(events, "ack")[1]["admits"] == [steer["eventSeq"]]


def test_coordination_63_65_every_call_has_one_result_and_every_turn_one_end(
    server: ServerProcess, work: Path
) -> None:
    session_id = server.create(work)
    server.prompt(session_id, "many ways")
    first, second = _asked(server, session_id)
    server.call("approval/answer", approvalId=first, optionId="allow_once")
    server.call("approval/answer", approvalId=second, optionId="reject_once")
    server.wait(session_id)
    server.prompt(session_id, "run")
    _asked(server, session_id)
    server.call("session/cancel", sessionId=session_id)
    server.wait(session_id)
    events = server.events(session_id)
    calls = [call["callId"] for call in _of(events, "tool_call")]
    results = _of(events, "tool_result")
    assert len(calls) == 7
    assert Counter(r["callId"] for r in results) == Counter(calls)
    assert [r["status"] for r in results] == [
        "ok", "error", "error", "error", "ok", "denied", "cancelled",
    ]  # fmt: skip
    begun = [e["turnId"] for e in events if e["type"] == "turn_started"]
    ended = [e["turnId"] for e in events if e["type"] == "turn_finished"]
    assert begun == ended
    assert len(set(begun)) == 2


def test_coordination_67_a_full_window_is_summarised_now_and_then_and_keeps_the_latest_words(
    server: ServerProcess, work: Path
) -> None:
    session_id = server.create(work)
    for n in range(8):
        server.prompt(session_id, f"note {n}: " + "lorem ipsum " * 250)
        server.wait(session_id)
    events = server.events(session_id)
    summaries = _of(events, "summary")
    assert 1 <= len(summaries) <= 4
    for summary in summaries:
        said = [
            e["data"]["content"][0]["text"]
            for e in events
            if e["type"] == "message"
            and e["data"]["author"]["kind"] == "person"
            and e["seq"] <= summary["coversThrough"]
        ]
        assert summary["text"].startswith("A SUMMARY.")
        assert said[-1][:40] in summary["text"]
    assert {t["outcome"] for t in _of(events, "turn_finished")} == {"completed"}


_CONSTRAINT = re.compile(r"CONSTRAINT: [^.]+\.")


def _summarises(messages: Messages) -> Delta:
    """A model that keeps the constraints that it can see when it is asked for a summary, and nothing
    else; so one is in a summary only if what it was sent held it."""
    if "You write the summary" not in text_of(messages[0]):
        return {"content": "Heard."}
    seen = _CONSTRAINT.findall("\n".join(text_of(message) for message in messages))
    return {"content": "The summary. " + " ".join(dict.fromkeys(seen))}


def test_coordination_67_constraints_outlive_each_rotation_and_what_was_said_before_is_recalled(
    tmp_path: Path, work: Path
) -> None:
    filler = "lorem ipsum " * 250
    first, second = "CONSTRAINT: never touch the folder lib.", "CONSTRAINT: answer in Latin."
    with ChatAside(_summarises) as model:
        model.configure(tmp_path / "home" / "config", context_window=_window(7_700))
        with ServerProcess(tmp_path, model=model.model_id) as server:
            session_id = server.create(work)

            def turn(text: str) -> list[dict[str, Any]]:
                server.prompt(session_id, f"{text} {filler}")
                assert server.wait(session_id)["turn"]["state"] == "completed"
                return _of(server.events(session_id), "summary")

            def until(count: int) -> list[dict[str, Any]]:
                for _ in range(30):
                    if len(summaries := turn("note")) >= count:
                        return summaries
                raise AssertionError(f"no {count} summaries were made")

            turn(f"zebrafish {first}")
            until(1)
            turn(f"axolotl {second}")
            summaries = until(3)
            turns = types(server.events(session_id)).count("turn_finished")
            assert turns > 2 * len(summaries)  # now and then, not each time
            for word, constraint in (("zebrafish", first), ("axolotl", second)):
                hits = server.call("session/search", query=word, sessionId=session_id)["data"]
                (hit,) = [hit for hit in hits if hit["type"] == "message"]
                event = server.events(session_id)[hit["seq"] - 1]
                assert event["data"]["content"][0]["text"].startswith(f"{word} {constraint}")
    last = "\n".join(text_of(message) for message in model.asked[-1])
    assert first in last
    assert second in last
    assert "zebrafish" not in last  # the words themselves are behind three rotations
    assert "axolotl" not in last
    assert all(first in summary["text"] for summary in summaries)


def test_coordination_68_two_failures_and_a_success_leave_two_retries_in_the_log(
    server: ServerProcess, work: Path
) -> None:
    session_id = server.create(work)
    server.prompt(session_id, "flaky")
    assert server.wait(session_id)["finalText"] == "Heard."
    retries = _of(server.events(session_id), "model_retried")
    assert [r["attempt"] for r in retries] == [1, 2]
    assert {r["error"]["message"] for r in retries} == {"try again"}


def test_coordination_69_a_cancel_between_two_attempts_ends_the_turn_at_once(
    server: ServerProcess, work: Path
) -> None:
    session_id = server.create(work)
    scope = {"kind": "session", "id": session_id}
    server.call("event/subscribe", scope=scope, **{"from": "start"})
    server.prompt(session_id, "offline")
    retry = server.until_event(lambda e: e["type"] == "model_retried")
    assert retry["data"]["delayMs"] == 60_000
    server.call("session/cancel", sessionId=session_id)
    assert server.wait(session_id)["turn"]["state"] == "cancelled"


def test_interrupts_64_66_a_replay_is_the_whole_log_in_the_server_s_order_with_no_echo(
    server: ServerProcess, work: Path
) -> None:
    session_id = server.create(work)
    for text in ("one", "two"):
        server.prompt(session_id, text)
        server.wait(session_id)
    scope = {"kind": "session", "id": session_id}
    server.call("event/subscribe", scope=scope, **{"from": "start"})
    replayed: list[dict[str, Any]] = []

    def caught_up(message: dict[str, Any]) -> bool:
        if message.get("method") == "event/batch":
            replayed.extend(message["params"]["events"])
            return message["params"]["caughtUp"]
        return False

    server.until(caught_up)
    assert replayed == server.events(session_id)
    assert [e["seq"] for e in replayed] == list(range(1, len(replayed) + 1))
    assert [e["pos"] for e in replayed] == sorted(e["pos"] for e in replayed)
    said = [
        e["data"]["content"][0]["text"]
        for e in replayed
        if e["type"] == "message" and e["data"]["author"]["kind"] == "person"
    ]
    assert said == ["one", "two"]
