"""Permissions: asked about a call that the client knows, answered from anywhere, asked again after a kill."""

from pathlib import Path
from typing import Any

import pytest
from acp_scenes import scenes, workspace

from harness.acp import AcpProcess, allow
from harness.process import ServerProcess, scenario

TEAM = """
rules:
  - when: {system: "name: kid", last_tool: write_file}
    answer: [{say: The child is done.}]
  - when: {last_user: {contains: write the file}, last_tool: write_file}
    answer: [{say: The child is done.}]
  - when: {last_user: {contains: write the file}, step: 0}
    answer: [{call: {tool: write_file, arguments: {path: kid.txt, content: "x"}}}]
  - when: {last_user: {contains: delegate}, step: 0}
    answer: [{call: {tool: spawn_agent, arguments: {name: kid, message: Please write the file.}}}]
  - when: {last_tool: spawn_agent}
    answer: [{call: {tool: wait_agents, arguments: {}}}]
default: [{say: All done.}]
"""


def choose(option: str, **more: Any):
    def permit(_: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": {"outcome": "selected", "optionId": option, **more}}

    return permit


def cancelled(_: dict[str, Any]) -> dict[str, Any]:
    return {"outcome": {"outcome": "cancelled"}}


CAREFUL = '[approvals.policy]\nwrite = "ask"\n'


def asking(folder: Path, **more: Any) -> AcpProcess:
    return AcpProcess(folder, model=scenes(folder), config=CAREFUL, **more)


def test_a_permission_shows_the_call_that_the_client_knows_with_its_diff(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with asking(tmp_path, permit=allow) as agent:
        session = agent.new(folder)
        assert agent.prompt(session, "write it") == "end_turn"
        (request,) = agent.asked()
        params = request["params"]
        assert params["sessionId"] == session
        call_id = params["toolCall"]["toolCallId"]
        before = agent.updates(since=0)
        told = [u for u in before if u.get("toolCallId") == call_id]
        assert told[0]["sessionUpdate"] == "tool_call" and told[0]["status"] == "pending"
        place = agent.seen.index(request)
        assert any(
            m["params"]["update"].get("toolCallId") == call_id
            for m in agent.seen[:place] if m.get("method") == "session/update"
        )  # fmt: skip
        (diff,) = params["toolCall"]["content"]
        assert diff["type"] == "diff" and diff["newText"] == "one\ntwo\n"
        assert params["toolCall"]["kind"] == "edit" and params["toolCall"]["status"] == "pending"
        kinds = {o["optionId"]: o["kind"] for o in params["options"]}
        assert kinds == {
            "allow_once": "allow_once", "allow_session": "allow_always",
            "allow_always": "allow_always", "reject_once": "reject_once",
            "reject_always": "reject_always",
        }  # fmt: skip
        assert [u.get("status") for u in told if u.get("status")] == [
            "pending", "in_progress", "completed",
        ]  # fmt: skip
        assert (folder / "new.txt").read_text() == "one\ntwo\n"


def test_a_rejection_fails_the_call_and_the_turn_goes_on(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    permit = choose("reject_once", _meta={"feedback": "not here"})
    with asking(tmp_path, permit=permit) as agent:
        session = agent.new(folder)
        assert agent.prompt(session, "write it") == "end_turn"
        (failed,) = [u for u in agent.updates() if u.get("status") == "failed"]
        assert "not here" in failed["content"][0]["content"]["text"]
        assert not (folder / "new.txt").exists()


def test_allow_for_the_session_is_not_asked_twice(tmp_path: Path) -> None:
    with asking(tmp_path, permit=choose("allow_session")) as agent:
        session = agent.new(workspace(tmp_path))
        assert agent.prompt(session, "write it") == "end_turn"
        (tmp_path / "work" / "new.txt").unlink()
        assert agent.prompt(session, "change it") == "end_turn"
        assert len({r["params"]["toolCall"]["name"] for r in agent.asked()}) == len(agent.asked())


@pytest.mark.parametrize("answer", [cancelled, lambda _: RuntimeError("no"), choose("dance")])
def test_what_is_no_answer_leaves_the_permission_open(tmp_path: Path, answer: Any) -> None:
    """The turn waits until somebody decides; its cancel does."""
    with asking(tmp_path, permit=answer) as agent:
        session = agent.new(workspace(tmp_path))
        asked = agent.ask(session, "write it")
        agent.until_asked()
        listed = agent.call("_callboard/approval/list", state="pending")["data"]
        assert len(listed) == 1
        agent.notify("session/cancel", sessionId=session)
        assert agent.result(asked) == {"stopReason": "cancelled"}
        assert not (tmp_path / "work" / "new.txt").exists()


def test_a_cancel_takes_the_question_back(tmp_path: Path) -> None:
    with asking(tmp_path) as agent:
        session = agent.new(workspace(tmp_path))
        asked = agent.ask(session, "write it")
        question = agent.until_asked()
        agent.notify("session/cancel", sessionId=session)
        assert agent.result(asked) == {"stopReason": "cancelled"}
        taken = [m for m in agent.seen if m.get("method") == "$/cancel_request"]
        if not taken:
            taken = [agent.until(lambda m: m.get("method") == "$/cancel_request")]
        assert taken[0]["params"]["requestId"] == question["id"]
        agent.send({"jsonrpc": "2.0", "id": question["id"], "result": allow({})})  # too late
        assert agent.prompt(session, "hi") == "end_turn"
        assert not (tmp_path / "work" / "new.txt").exists()


def test_whoever_answers_first_wins_and_the_editor_is_told(tmp_path: Path) -> None:
    """Another server on the same store, with a client of Callboard's own protocol."""
    folder = workspace(tmp_path)
    with asking(tmp_path) as agent, ServerProcess(tmp_path, approvals=False) as other:
        session = agent.new(folder)
        asked = agent.ask(session, "write it")
        question = agent.until_asked()
        (approval,) = other.call("approval/list", state="pending")["data"]
        other.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
        assert agent.result(asked) == {"stopReason": "end_turn"}
        (taken,) = [m for m in agent.seen if m.get("method") == "$/cancel_request"]
        assert taken["params"]["requestId"] == question["id"]
        assert (folder / "new.txt").exists()


@pytest.mark.parametrize("way", ["session/load", "session/resume"])
def test_what_waits_when_the_server_is_killed_is_asked_again(tmp_path: Path, way: str) -> None:
    folder = workspace(tmp_path)
    with asking(tmp_path) as agent:
        session = agent.new(folder)
        agent.ask(session, "write it")
        first = agent.until_asked()["params"]
        agent.kill()
    with asking(tmp_path) as agent:
        request = agent.request(way, sessionId=session, cwd=str(folder), mcpServers=[])
        answered = agent.answer_to(request)
        assert "result" in answered and not agent.asked(), "first the answer, then the question"
        again = agent.until_asked()
        assert again["params"]["toolCall"]["toolCallId"] == first["toolCall"]["toolCallId"]
        assert again["params"]["options"] == first["options"]
        known = [u for u in agent.updates() if u["sessionUpdate"] == "tool_call"]
        assert known[-1]["toolCallId"] == first["toolCall"]["toolCallId"]
        agent.send({"jsonrpc": "2.0", "id": again["id"], "result": allow({})})
        agent.until_update("tool_call_update", status="completed")
        assert (folder / "new.txt").read_text() == "one\ntwo\n"


def test_what_was_left_open_is_asked_again_when_the_session_is_loaded(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with asking(tmp_path, permit=cancelled) as agent:
        session = agent.new(folder)
        asked = agent.ask(session, "write it")
        agent.until_asked()
        agent.answers["session/request_permission"] = allow
        agent.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
        agent.until_update("tool_call_update", status="completed")
        assert (folder / "new.txt").exists()
        (answer,) = [m for m in agent.seen if m.get("id") == asked and "method" not in m]
        assert answer["result"] == {"stopReason": "cancelled"}, "it follows the session anew"


def test_a_childs_question_reaches_the_editor_of_its_root(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with AcpProcess(
        tmp_path,
        model=scenario(tmp_path, TEAM),
        permit=allow,
        config=CAREFUL,
    ) as agent:
        session = agent.new(folder)
        assert agent.prompt(session, "delegate") == "end_turn"
        (request,) = agent.asked()
        assert request["params"]["sessionId"] == session
        call = request["params"]["toolCall"]
        assert call["title"].startswith("kid: ")
        told = [u for u in agent.updates(session) if u.get("toolCallId") == call["toolCallId"]]
        assert told[0]["sessionUpdate"] == "tool_call", "the client knows what it is asked about"
        assert told[-1]["status"] == "completed"
        assert (folder / "kid.txt").exists()


def test_an_editor_is_asked_only_about_what_it_has_open(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with asking(tmp_path) as agent, asking(tmp_path, permit=allow) as other:
        session = agent.new(folder)
        asked = agent.ask(session, "write it")
        agent.until_asked()
        elsewhere = other.new(folder)
        assert other.prompt(elsewhere, "hi") == "end_turn"
        assert not other.asked()
        other.call("session/resume", sessionId=session, cwd=str(folder), mcpServers=[])
        assert agent.result(asked) == {"stopReason": "end_turn"}


@pytest.mark.parametrize("name", [None, "CodeCompanion.nvim"])
def test_a_client_that_goes_by_kinds_is_offered_one_answer_of_each(
    tmp_path: Path, name: str | None
) -> None:
    """avante.nvim says no name and takes any answer for a refusal whose id is not that of a kind;
    CodeCompanion.nvim has one key for each kind."""
    folder = workspace(tmp_path)
    with asking(tmp_path, permit=choose("allow_always"), name=name) as agent:
        session = agent.new(folder)
        assert agent.prompt(session, "write it") == "end_turn"
        (request,) = agent.asked()
        assert [(o["optionId"], o["kind"]) for o in request["params"]["options"]] == [
            ("allow_once", "allow_once"),
            ("allow_always", "allow_always"),
            ("reject_once", "reject_once"),
        ]
        assert request["params"]["options"][1]["name"].endswith("for this session")
        assert (folder / "new.txt").exists()
    with ServerProcess(tmp_path) as other:
        (rule,) = other.call("approval/ruleList")["data"]
        assert rule["scope"] == "session", "nothing holds beyond it"


def test_a_question_that_was_passed_over_is_asked_anew_with_the_next_prompt(tmp_path: Path) -> None:
    """CodeCompanion.nvim does not show what it is asked after a load, until it sends a prompt."""
    folder = workspace(tmp_path)
    with asking(tmp_path) as agent:
        session = agent.new(folder)
        agent.ask(session, "write it")
        agent.until_asked()
        agent.kill()
    with asking(tmp_path, name="CodeCompanion.nvim") as agent:
        agent.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
        passed_over = agent.until_asked()
        asked = agent.ask(session, "hi")
        again = agent.until_asked()
        assert again["params"] == passed_over["params"]
        taken = next(m for m in agent.seen if m.get("method") == "$/cancel_request")
        assert taken["params"]["requestId"] == passed_over["id"]
        agent.send({"jsonrpc": "2.0", "id": again["id"], "result": allow({})})
        assert agent.result(asked) == {"stopReason": "end_turn"}
        assert (folder / "new.txt").read_text() == "one\ntwo\n"
        assert len(agent.asked()) == 2


def test_a_question_that_was_put_aside_is_asked_again_with_the_next_prompt(tmp_path: Path) -> None:
    """The prompt waits behind it."""
    folder = workspace(tmp_path)
    with asking(tmp_path, permit=cancelled) as agent:
        session = agent.new(folder)
        first = agent.ask(session, "write it")
        agent.until_asked()
        agent.answers["session/request_permission"] = allow
        assert agent.prompt(session, "hi") == "end_turn"
        assert agent.result(first) == {"stopReason": "end_turn"}
        assert (folder / "new.txt").exists() and len(agent.asked()) == 2
