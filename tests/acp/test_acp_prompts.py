"""Prompts: their updates first and their answer last, one after the other, and cancels that are no errors."""

import base64
from pathlib import Path
from typing import Any

import psutil
import pytest
from acp_scenes import scenes, workspace

from harness.acp import ANEW, AcpProcess, RpcError, allow, kinds, texts
from harness.process import scenario


@pytest.fixture
def agent(tmp_path: Path):
    with AcpProcess(tmp_path, model=scenes(tmp_path), permit=allow) as agent:
        yield agent


def place(agent: AcpProcess, wanted: Any) -> int:
    """Where a frame stands among all that were read."""
    return next(n for n, message in enumerate(agent.seen) if wanted(message))


def test_a_prompt_answers_last_and_nothing_of_its_turn_follows(
    agent: AcpProcess, tmp_path: Path
) -> None:
    session = agent.new(workspace(tmp_path))
    assert agent.prompt(session, "hello there") == "end_turn"
    answered = len(agent.seen)
    assert texts(agent.updates()) == "You said: hello there"
    assert "user_message_chunk" not in kinds(agent.updates()), "the client has said it itself"
    agent.call("session/list")
    assert not agent.updates(since=answered)


def test_the_answer_to_new_comes_before_any_update_of_the_session(
    agent: AcpProcess, tmp_path: Path
) -> None:
    session = agent.new(workspace(tmp_path))
    commands = agent.until_update("available_commands_update")
    assert {"compact", "title", "mode"} <= {c["name"] for c in commands["availableCommands"]}
    first = place(agent, lambda m: m.get("result", {}).get("sessionId") == session)
    assert place(agent, lambda m: m.get("method") == "session/update") > first


def test_messages_and_thoughts_have_ids_and_arrive_whole(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    assert agent.prompt(session, "write it") == "end_turn"
    updates = agent.updates()
    assert texts(updates, "agent_thought_chunk") == "A file is wanted."
    said = [u for u in updates if u["sessionUpdate"].endswith("_chunk")]
    by_id: dict[str, set[str]] = {}
    for update in said:
        by_id.setdefault(update["messageId"], set()).add(update["sessionUpdate"])
    assert all(len(found) == 1 for found in by_id.values()), "an id is of one message of one kind"
    assert len(by_id) == 3


def test_a_tool_call_comes_before_its_updates_and_shows_its_diff(
    agent: AcpProcess, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    session = agent.new(folder)
    agent.call("session/set_mode", sessionId=session, modeId="work")
    assert agent.prompt(session, "change it") == "end_turn"
    calls = [u for u in agent.updates() if u["sessionUpdate"].startswith("tool_call")]
    assert calls[0]["sessionUpdate"] == "tool_call"
    assert len({u["toolCallId"] for u in calls}) == 1
    first, last = calls[0], calls[-1]
    assert first["kind"] == "edit" and first["name"] == "edit_file"
    assert first["status"] in ("pending", "in_progress")
    assert first["rawInput"]["path"] == "old.txt"
    assert first["locations"][0] == {"path": str(folder / "old.txt"), "line": 1}
    assert last["status"] == "completed"
    (diff,) = [c for c in last["content"] if c["type"] == "diff"]
    assert diff == {
        "type": "diff",
        "path": str(folder / "old.txt"),
        "oldText": "one\ntwo\nthree\n",
        "newText": "one\nTWO\nthree\n",
    }
    assert (folder / "old.txt").read_text() == "one\nTWO\nthree\n"


def test_a_new_file_has_no_old_text_and_a_read_tells_its_line(
    agent: AcpProcess, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    session = agent.new(folder)
    assert agent.prompt(session, "write it") == "end_turn"
    diffs = [c for u in agent.updates() for c in u.get("content") or [] if isinstance(c, dict)
             and c.get("type") == "diff"]  # fmt: skip
    assert diffs and all("oldText" not in d or d["oldText"] is None for d in diffs)
    assert diffs[-1]["newText"] == "one\ntwo\n"
    assert agent.prompt(session, "look") == "end_turn"
    assert {"path": str(folder / "old.txt"), "line": 2} in [
        location for u in agent.updates() for location in u.get("locations") or []
    ]


def test_a_call_that_fails_says_how(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    assert agent.prompt(session, "missing") == "end_turn"
    (failed,) = [u for u in agent.updates() if u.get("status") == "failed"]
    assert "nowhere.txt" in failed["content"][0]["content"]["text"]


def test_a_plan_is_told_whole(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    assert agent.prompt(session, "plan it") == "end_turn"
    (plan,) = [u for u in agent.updates() if u["sessionUpdate"] == "plan"]
    assert [(e["content"], e["status"]) for e in plan["entries"]] == [
        ("First", "completed"), ("Then", "pending"),
    ]  # fmt: skip


def test_a_long_answer_comes_in_pieces_that_an_old_client_can_read(
    agent: AcpProcess, tmp_path: Path
) -> None:
    """That no frame is longer is judged for every frame of every test; here one would be."""
    session = agent.new(workspace(tmp_path))
    assert agent.prompt(session, "at length") == "end_turn"
    assert texts(agent.updates()) == "0123456789abcdef\n" * 12_000
    seen = len(agent.seen)
    agent.call("session/load", sessionId=session, cwd=str(tmp_path / "work"), mcpServers=[])
    assert texts(agent.updates(since=seen)) == "0123456789abcdef\n" * 12_000


def test_usage_and_title_are_told_before_the_answer(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    assert agent.prompt(session, "how much was it?") == "end_turn"
    told = agent.updates()
    (usage,) = [u for u in told if u["sessionUpdate"] == "usage_update"]
    assert usage["used"] == 132 < usage["size"]
    assert usage["cost"] == {"amount": 0.5, "currency": "EUR"}
    (info,) = [u for u in told if u["sessionUpdate"] == "session_info_update"]
    assert info["title"] == "how much was it?" and info["updatedAt"].endswith("Z")


@pytest.mark.parametrize(
    ("text", "reason"), [("too long", "max_tokens"), ("forbidden", "refusal"), ("hi", "end_turn")]
)
def test_why_a_turn_stopped(agent: AcpProcess, tmp_path: Path, text: str, reason: str) -> None:
    assert agent.prompt(agent.new(workspace(tmp_path)), text) == reason


def test_a_turn_that_has_used_its_steps_says_so(tmp_path: Path) -> None:
    steps = {"CALLBOARD_LIMITS_MAX_ITERATIONS": "1"}
    with AcpProcess(tmp_path, model=scenes(tmp_path), environ=steps) as agent:
        session = agent.new(workspace(tmp_path))
        assert agent.prompt(session, "look") == "max_turn_requests"


def test_a_turn_that_fails_is_an_error_with_its_words(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    with pytest.raises(RpcError) as failed:
        agent.prompt(session, "break")
    assert "the model is on fire" in failed.value.error["message"]
    assert failed.value.kind == "modelError"
    assert agent.prompt(session, "hi") == "end_turn", "the session goes on"


# --- several, and cancels -------------------------------------------------------------------------------


def test_a_second_prompt_waits_for_the_first_and_each_answers_its_own(
    agent: AcpProcess, tmp_path: Path
) -> None:
    session = agent.new(workspace(tmp_path))
    first, second = agent.ask(session, "at length"), agent.ask(session, "two")
    assert agent.result(first) == {"stopReason": "end_turn"}
    after = len(agent.seen)
    assert "You said" not in texts(agent.updates()), (
        "nothing of the second before the first's answer"
    )
    assert agent.result(second) == {"stopReason": "end_turn"}
    assert texts(agent.updates(since=after)) == "You said: two"


def test_cancel_ends_the_turn_as_cancelled(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    asked = agent.ask(session, "stall")
    agent.until_update("agent_message_chunk")
    agent.notify("session/cancel", sessionId=session)
    assert agent.result(asked) == {"stopReason": "cancelled"}
    assert agent.prompt(session, "hi") == "end_turn"


def test_cancel_ends_what_waits_as_well(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    asked = [agent.ask(session, "stall"), agent.ask(session, "two"), agent.ask(session, "three")]
    agent.until_update("agent_message_chunk")
    agent.notify("session/cancel", sessionId=session)
    answers: dict[int, Any] = {}
    while len(answers) < 3:
        answer = agent.until(lambda m: m.get("id") in asked and "method" not in m)
        answers[answer["id"]] = answer["result"]["stopReason"]
    assert answers == dict.fromkeys(asked, "cancelled")
    assert agent.prompt(session, "hi") == "end_turn"
    assert texts(agent.updates()) == "Thinking.You said: hi"


def test_a_cancel_that_overtakes_its_prompt_cancels_it_and_not_the_next(
    agent: AcpProcess, tmp_path: Path
) -> None:
    """All three are on the wire before the first of them is looked at."""
    session = agent.new(workspace(tmp_path))
    frames: list[dict[str, Any]] = []
    for request_id, text in ((901, "stall"), (None, ""), (902, "hi")):
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": "session/cancel",
                                   "params": {"sessionId": session}}  # fmt: skip
        if request_id is not None:
            message = {
                "jsonrpc": "2.0",
                "id": request_id,
                "method": "session/prompt",
                "params": {"sessionId": session, "prompt": [{"type": "text", "text": text}]},
            }
        frames.append(message)
    agent.send_together(frames)
    assert agent.result(901) == {"stopReason": "cancelled"}
    assert agent.result(902) == {"stopReason": "end_turn"}


def test_a_cancel_without_anything_to_cancel_is_nothing(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    agent.notify("session/cancel", sessionId=session)
    agent.notify("session/cancel", sessionId="ses_unheard_of")
    assert agent.prompt(session, "hi") == "end_turn"


def test_cancels_of_sessions_that_are_not_there_leave_nothing_behind(tmp_path: Path) -> None:
    with AcpProcess(tmp_path, model=scenes(tmp_path), program=ANEW) as agent:
        session = agent.new(workspace(tmp_path))
        process = psutil.Process(agent.process.pid)
        before = process.memory_info().rss
        for number in range(300):
            agent.notify("session/cancel", sessionId=f"{number}" + "x" * 1_000_000)
        assert agent.prompt(session, "hi") == "end_turn"
        assert process.memory_info().rss - before < 150_000_000


def test_cancel_request_of_a_prompt_ends_that_one_alone(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    running, waiting, last = (
        agent.ask(session, "stall"), agent.ask(session, "two"), agent.ask(session, "three"),
    )  # fmt: skip
    agent.until_update("agent_message_chunk")
    agent.notify("$/cancel_request", requestId=waiting)
    assert agent.result(waiting) == {"stopReason": "cancelled"}
    agent.notify("$/cancel_request", requestId=running)
    assert agent.result(running) == {"stopReason": "cancelled"}
    assert agent.result(last) == {"stopReason": "end_turn"}
    assert texts(agent.updates()) == "Thinking.You said: three"


def test_cancel_request_of_something_else_is_an_answer_too(agent: AcpProcess) -> None:
    asked = agent.request("session/list")
    agent.notify("$/cancel_request", requestId=asked)
    agent.notify("$/cancel_request", requestId="unheard of")
    answer = agent.answer_to(asked)
    assert "result" in answer or answer["error"]["code"] == -32800


# --- content --------------------------------------------------------------------------------------------


def send(agent: AcpProcess, session: str, *blocks: dict[str, Any]) -> Any:
    return agent.call("session/prompt", sessionId=session, prompt=list(blocks))


def test_images_links_and_embedded_texts_are_taken(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    pixel = base64.b64encode(b"\x89PNG not really").decode()
    send(
        agent,
        session,
        {"type": "text", "text": "see"},
        {"type": "image", "data": pixel, "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///a/b.py", "name": "b.py"},
        {"type": "resource", "resource": {"uri": "file:///c.md", "text": "# Title", "mimeType": "text/markdown"}},
        {"type": "resource", "resource": {"uri": "x:p", "blob": pixel, "mimeType": "image/png"}},
    )  # fmt: skip
    seen = len(agent.seen)
    agent.call("session/load", sessionId=session, cwd=str(tmp_path / "work"), mcpServers=[])
    back = [u["content"] for u in agent.updates(since=seen)
            if u["sessionUpdate"] == "user_message_chunk"]  # fmt: skip
    assert [block["type"] for block in back] == [
        "text", "image", "resource_link", "resource", "image",
    ]  # fmt: skip
    assert back[3]["resource"]["text"] == "# Title"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {
            "type": "resource",
            "resource": {"uri": "x:p", "blob": "AAAA", "mimeType": "application/zip"},
        },
        {"type": "image", "data": "%%%", "mimeType": "image/png"},
    ],
)
def test_what_no_agent_understands_is_refused_by_its_place(
    agent: AcpProcess, tmp_path: Path, block: dict[str, Any]
) -> None:
    session = agent.new(workspace(tmp_path))
    with pytest.raises(RpcError) as refused:
        send(agent, session, {"type": "text", "text": "hear"}, block)
    assert refused.value.error["code"] == -32602
    assert "[1]" in refused.value.error["message"]
    with pytest.raises(RpcError) as empty:
        send(agent, session)
    assert empty.value.error["code"] == -32602


def test_what_is_named_at_great_length_is_told_again_in_frames_that_fit(
    agent: AcpProcess, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    session = agent.new(folder)
    long = "x" * 70_000
    uri = f"file:///{long}"
    prompt = [
        {"type": "resource_link", "uri": uri, "name": long},
        {"type": "resource", "resource": {"uri": uri, "text": "the text", "mimeType": long}},
        {"type": "image", "data": "aGk=", "mimeType": f"image/{long}"},
    ]
    agent.result(agent.request("session/prompt", sessionId=session, prompt=prompt))
    since = len(agent.seen)
    agent.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
    told = texts(agent.updates(session, since=since), "user_message_chunk")
    assert "](file:///xxx" in told and "the text" in told and "[an image (image/xxx" in told


def test_what_stands_beside_a_prompt_counts_as_it_does(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    for meta in ({"a": "x" * 9_000_000}, {"b": ["yy"] * 2_000_000}):
        answer = agent.answer_to(agent.ask(session, "hi", _meta=meta))
        assert answer["error"]["data"]["kind"] == "messageTooLarge"
    assert agent.prompt(session, "hi", _meta={"a": "x"}) == "end_turn"


def test_a_tool_with_a_hostile_name_is_shown_as_it_is(tmp_path: Path) -> None:
    scene = """
rules:
  - when: {step: 0}
    answer: [{call: {tool: "rm\\e[2K\\u202e", arguments: {}}}]
default: [{say: No.}]
"""
    with AcpProcess(tmp_path, model=scenario(tmp_path, scene)) as agent:
        agent.prompt(agent.new(workspace(tmp_path)), "go")
        (call,) = [u for u in agent.updates() if u["sessionUpdate"] == "tool_call"]
        assert call["title"] == call["name"] == "rm\\x1b[2K\\u202e"


def test_steering_joins_the_turn_that_runs(agent: AcpProcess, tmp_path: Path) -> None:
    assert agent.hello["agentCapabilities"]["_meta"]["steering"]["supported"] is True
    assert agent.hello["_meta"]["steering"]["supported"] is True
    session = agent.new(workspace(tmp_path))
    running = agent.ask(session, "stall")
    agent.until_update("agent_message_chunk")
    steered = agent.call(
        "_session/steering", sessionId=session, prompt=[{"type": "text", "text": "never mind"}]
    )
    assert steered == {"outcome": "injected"}
    agent.notify("$/cancel_request", requestId=running)
    assert agent.result(running) == {"stopReason": "cancelled"}


def test_steering_where_no_turn_runs_begins_one_or_leaves_it_to_the_client(
    agent: AcpProcess, tmp_path: Path
) -> None:
    session = agent.new(workspace(tmp_path))
    said = [{"type": "text", "text": "never mind"}]
    declined = agent.call(
        "_session/steering",
        sessionId=session,
        prompt=said,
        _meta={"steering": {"idleBehavior": "promptRequired"}},
    )
    assert declined == {"outcome": "promptRequired", "reason": "noRunningTurn"}
    assert agent.prompt(session, "hello") == "end_turn"
    assert texts(agent.updates()) == "You said: hello", "nothing of it was written down"
    began = agent.call("_session/steering", sessionId=session, prompt=said)
    assert began == {"outcome": "startedNewTurn"}
    while not texts(agent.updates()).endswith("You said: never mind"):
        agent.until_update("agent_message_chunk")
