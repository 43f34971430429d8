"""Sessions of the Agent Client Protocol: they begin, are found, told again, shared, closed and deleted."""

from pathlib import Path
from typing import Any

import pytest
from acp_scenes import scenes, workspace

from harness.acp import AcpProcess, RpcError, allow, kinds, texts


@pytest.fixture
def agent(tmp_path: Path):
    with AcpProcess(tmp_path, model=scenes(tmp_path), permit=allow) as agent:
        yield agent


def load(
    agent: AcpProcess, session: str, folder: Path, way: str = "session/load"
) -> dict[str, Any]:
    return agent.call(way, sessionId=session, cwd=str(folder), mcpServers=[])


def test_load_tells_everything_and_then_answers(agent: AcpProcess, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    session = agent.new(folder)
    agent.prompt(session, "plan it")
    agent.prompt(session, "write it")
    first = agent.updates()
    agent.close()
    with AcpProcess(tmp_path, model=scenes(tmp_path)) as fresh:
        answer = load(fresh, session, folder)
        told = fresh.updates(session)
        assert answer["modes"]["currentModeId"] and answer["configOptions"]
        assert kinds(told).count("user_message_chunk") == 2
        assert texts(told, "user_message_chunk") == "plan itwrite it"
        assert texts(told) == texts(first)
        assert texts(told, "agent_thought_chunk") == "A file is wanted."
        calls = [u for u in told if u["sessionUpdate"].startswith("tool_call")]
        assert [c["sessionUpdate"] for c in calls] == ["tool_call", "tool_call"]
        assert [c["status"] for c in calls] == ["completed", "completed"]
        assert any(c["type"] == "diff" for c in calls[1]["content"])
        assert kinds(told)[-1] == "plan", "the last plan, once"
        ids = {u["messageId"] for u in first if "messageId" in u}
        assert ids <= {u.get("messageId") for u in told}
        assert fresh.prompt(session, "hi") == "end_turn"


def test_resume_tells_nothing_and_goes_on(agent: AcpProcess, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    session = agent.new(folder)
    agent.prompt(session, "hello")
    agent.close()
    with AcpProcess(tmp_path, model=scenes(tmp_path)) as fresh:
        answer = load(fresh, session, folder, "session/resume")
        assert not fresh.updates()
        assert answer["modes"] and answer["configOptions"]
        assert fresh.prompt(session, "again") == "end_turn"
        assert texts(fresh.updates()) == "You said: again"


def test_an_opened_session_tells_its_title_and_usage_after_the_answer(
    agent: AcpProcess, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    session = agent.new(folder)
    agent.prompt(session, "how much is it?")
    agent.close()
    with AcpProcess(tmp_path, model=scenes(tmp_path)) as fresh:
        load(fresh, session, folder, "session/resume")
        assert not fresh.updates()
        assert fresh.until_update("session_info_update")["title"] == "how much is it?"
        assert fresh.until_update("usage_update")["used"] == 132


def test_after_a_load_that_is_called_off_a_prompt_is_answered(
    agent: AcpProcess, tmp_path: Path
) -> None:
    """Whenever it is called off: the session is open, and then it is followed, or it is not open."""
    folder = workspace(tmp_path)
    session = agent.new(folder)
    agent.prompt(session, "at length")
    request = agent.request("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
    agent.notify("$/cancel_request", requestId=request)
    answer = agent.answer_to(request)
    prompt = agent.answer_to(agent.ask(session, "hi"))
    if "error" in answer:
        assert answer["error"]["code"] == -32800
    if "error" in prompt:
        assert "error" in answer and prompt["error"]["code"] == -32002
        load(agent, session, folder)
        assert agent.prompt(session, "hi") == "end_turn"
    else:
        assert prompt["result"] == {"stopReason": "end_turn"}


def test_a_session_may_be_made_without_mcp_servers(agent: AcpProcess, tmp_path: Path) -> None:
    assert agent.call("session/new", cwd=str(workspace(tmp_path)))["sessionId"]


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("session/load", {"cwd": "/", "mcpServers": []}),
        ("session/resume", {"cwd": "/", "mcpServers": []}),
        ("session/prompt", {"prompt": [{"type": "text", "text": "x"}]}),
        ("session/set_mode", {"modeId": "plan"}),
        ("session/set_config_option", {"configId": "mode", "value": "plan"}),
        ("session/set_model", {"modelId": "scripted/demo"}),
        ("session/close", {}),
        ("session/delete", {}),
        ("_session/steering", {"prompt": [{"type": "text", "text": "x"}]}),
    ],
)
def test_an_unknown_session_is_32002_in_every_method(
    agent: AcpProcess, method: str, more: dict[str, Any]
) -> None:
    with pytest.raises(RpcError) as unknown:
        agent.call(method, sessionId="ses_unheard_of", **more)
    assert unknown.value.error["code"] == -32002
    assert "ses_unheard_of" in unknown.value.error["message"]


def test_a_session_works_where_it_was_made(agent: AcpProcess, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    session = agent.new(folder)
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert load(agent, session, link)["modes"], "another name of the same folder"
    with pytest.raises(RpcError) as elsewhere:
        load(agent, session, tmp_path)
    assert elsewhere.value.error["code"] == -32602
    assert str(folder) in elsewhere.value.error["message"]


def test_the_list_has_pages_and_a_filter_and_no_children(agent: AcpProcess, tmp_path: Path) -> None:
    here, there = workspace(tmp_path), tmp_path / "there"
    there.mkdir()
    made = [agent.new(here) for _ in range(53)]
    other = agent.new(there, additionalDirectories=[str(here)])
    assert agent.call("session/list")["sessions"] == [], "nothing was said in any"
    for number, each in enumerate([*made, other]):
        agent.prompt(each, f"/title Number {number}")
    agent.prompt(made[0], "/title what it is about")
    page = agent.call("session/list")
    assert len(page["sessions"]) == 50
    rest = agent.call("session/list", cursor=page["nextCursor"])
    assert "nextCursor" not in rest
    found = [s["sessionId"] for s in page["sessions"] + rest["sessions"]]
    assert sorted(found) == sorted([*made, other]) and found[0] == made[0]
    assert page["sessions"][0]["title"] == "what it is about"
    assert page["sessions"][0]["updatedAt"].endswith("Z")
    (one,) = agent.call("session/list", cwd=str(there))["sessions"]
    assert one["sessionId"] == other and one["additionalDirectories"] == [str(here)]
    assert agent.call("session/list", cwd=str(tmp_path / "nowhere"))["sessions"] == []
    for wrong in ({"cwd": "relative"}, {"cursor": "nonsense"}):
        with pytest.raises(RpcError):
            agent.call("session/list", **wrong)


def test_pages_of_the_list_fit_a_frame(agent: AcpProcess, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d" * 200] * 6)
    deep.mkdir(parents=True)
    made = [agent.new(deep, additionalDirectories=[str(deep / "..")]) for _ in range(40)]
    for each in made:
        agent.prompt(each, "/title One of many")
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = agent.call("session/list", **cursor)
        found += [each["sessionId"] for each in page["sessions"]]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert found == made[::-1]


def test_nothing_is_hidden_in_a_title(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    agent.prompt(session, "\x1b[31mred \u202eback\x07")
    (told,) = [u for u in agent.updates() if u["sessionUpdate"] == "session_info_update"]
    (listed,) = agent.call("session/list")["sessions"]
    assert told["title"] == listed["title"] == "\\x1b[31mred \\u202eback\\x07"


def test_close_ends_what_runs_and_the_session_can_be_loaded_again(
    agent: AcpProcess, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    session = agent.new(folder)
    asked, waiting = agent.ask(session, "stall"), agent.ask(session, "two")
    agent.until_update("agent_message_chunk")
    closed = agent.request("session/close", sessionId=session)
    ends: dict[int, Any] = {}
    while len(ends) < 3:
        answer = agent.until(lambda m: m.get("id") in (asked, waiting, closed))
        ends[answer["id"]] = answer["result"]
    assert ends == {
        asked: {"stopReason": "cancelled"}, waiting: {"stopReason": "cancelled"}, closed: {},
    }  # fmt: skip
    with pytest.raises(RpcError) as gone:
        agent.prompt(session, "hi")
    assert gone.value.error["code"] == -32002
    assert agent.call("session/close", sessionId=session) == {}, "what is closed stays closed"
    load(agent, session, folder)
    assert agent.prompt(session, "hi") == "end_turn"


def test_delete_ends_it_for_good(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    asked = agent.ask(session, "stall")
    agent.until_update("agent_message_chunk")
    deleted = agent.request("session/delete", sessionId=session)
    ends: dict[int, Any] = {}
    while len(ends) < 2:
        answer = agent.until(lambda m: m.get("id") in (asked, deleted))
        ends[answer["id"]] = answer["result"]
    assert ends == {asked: {"stopReason": "cancelled"}, deleted: {}}
    assert agent.call("session/list")["sessions"] == []
    for _ in range(2):
        with pytest.raises(RpcError) as gone:
            agent.call("session/delete", sessionId=session)
        assert gone.value.error["code"] == -32002


def test_two_editors_share_a_session(tmp_path: Path) -> None:
    """Each in a process of its own: what one says the other is told, and its turns, too."""
    folder = workspace(tmp_path)
    model = scenes(tmp_path)
    with AcpProcess(tmp_path, model=model) as one, AcpProcess(tmp_path, model=model) as two:
        session = one.new(folder)
        assert one.prompt(session, "first") == "end_turn"
        load(two, session, folder)
        assert texts(two.updates(), "user_message_chunk") == "first"
        assert one.prompt(session, "second") == "end_turn"
        assert two.until_update("user_message_chunk")["content"]["text"] == "second"
        assert two.until_update("agent_message_chunk")["content"]["text"] == "You said: second"
        two.call("session/set_mode", sessionId=session, modeId="plan")
        assert one.until_update("current_mode_update")["currentModeId"] == "plan"
        options = one.until_update("config_option_update")["configOptions"]
        assert next(o for o in options if o["id"] == "mode")["currentValue"] == "plan"
        stalled = one.ask(session, "stall")
        two.until_update("user_message_chunk")
        two.notify("session/cancel", sessionId=session)
        assert one.result(stalled) == {"stopReason": "cancelled"}
        queued = two.prompt(session, "third")
        assert queued == "end_turn"
        assert one.until_update("user_message_chunk")["content"]["text"] == "third"


def test_a_prompt_outlives_its_editor(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with AcpProcess(tmp_path, model=scenes(tmp_path)) as agent:
        session = agent.new(folder)
        agent.ask(session, "stall")
        agent.until_update("agent_message_chunk")
        agent.kill()
    with AcpProcess(tmp_path, model=scenes(tmp_path)) as agent:
        load(agent, session, folder)
        assert texts(agent.updates(), "user_message_chunk") == "stall"
        assert agent.prompt(session, "do this instead") == "end_turn"


def test_mcp_servers_are_kept_without_secrets_and_told_to_be_unused(
    agent: AcpProcess, tmp_path: Path
) -> None:
    servers = [
        {"name": "disk", "command": "/bin/disk", "args": ["--token=s3cr3t-arg"],
         "env": [{"name": "KEY", "value": "s3cr3t-env"}]},
        {"type": "http", "name": "web", "url": "https://u:s3cr3t-url@example.org/x?k=s3cr3t-query",
         "headers": [{"name": "Authorization", "value": "s3cr3t-header"}]},
    ]  # fmt: skip
    answer = agent.call("session/new", cwd=str(workspace(tmp_path)), mcpServers=servers)
    assert answer["_meta"]["callboard"]["mcpServers"]["unsupported"] == ["disk", "web"]
    notice = agent.until_update("notice")
    assert notice["severity"] == "warning" and "disk, web" in notice["description"]
    assert agent.hello["agentCapabilities"]["mcpCapabilities"] == {"http": False, "sse": False}
    agent.close()
    stored = b"".join(p.read_bytes() for p in tmp_path.glob("store.db*") if p.is_file())
    assert b"acp/mcpServers" in stored and b"/bin/disk" in stored
    assert b"s3cr3t" not in stored
    assert "s3cr3t" not in agent.stderr()


def test_a_client_that_declares_nothing_is_sent_nothing_of_it(tmp_path: Path) -> None:
    """The checker refuses what was not declared; here there would be something to send."""
    with AcpProcess(tmp_path, model=scenes(tmp_path), capabilities={}, permit=allow) as agent:
        servers = [{"name": "disk", "command": "/bin/disk", "args": [], "env": []}]
        answer = agent.call("session/new", cwd=str(workspace(tmp_path)), mcpServers=servers)
        session = answer["sessionId"]
        for text in ("at length", "write it", "/compact"):
            assert agent.prompt(session, text) == "end_turn"
        told = set(kinds(agent.updates()))
        assert not told & {"notice", "compaction_update", "compaction_summary_chunk"}


def test_compaction_is_told_where_it_is_declared(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    for text in ("at length", "and then"):
        agent.prompt(session, text)
    assert agent.prompt(session, "/compact the numbers") == "end_turn"
    (told,) = [u for u in agent.updates() if u["sessionUpdate"] == "compaction_update"]
    assert told["status"] == "completed" and told["summary"][0]["text"]


def test_who_has_logged_out_begins_nothing_until_it_authenticates(
    agent: AcpProcess, tmp_path: Path
) -> None:
    assert agent.call("logout") == {}
    with pytest.raises(RpcError) as refused:
        agent.new(workspace(tmp_path))
    assert refused.value.error["code"] == -32000
    with pytest.raises(RpcError) as unknown:
        agent.call("authenticate", methodId="magic")
    assert unknown.value.error["code"] == -32602
    agent.call("authenticate", methodId=agent.hello["authMethods"][0]["id"])
    assert agent.prompt(agent.new(tmp_path / "work"), "hi") == "end_turn"


def test_without_a_key_authentication_says_what_is_missing(tmp_path: Path) -> None:
    with AcpProcess(tmp_path, model="openai/gpt-5") as agent:
        with pytest.raises(RpcError) as missing:
            agent.call("authenticate", methodId=agent.hello["authMethods"][0]["id"])
        assert missing.value.error["code"] == -32000
        assert "OPENAI_API_KEY" in missing.value.error["message"]
        session = agent.new(workspace(tmp_path))
        with pytest.raises(RpcError) as failed:
            agent.prompt(session, "hi")
        assert failed.value.error["code"] == -32000


def test_a_session_that_is_loaded_twice_at_once_is_told_once(
    agent: AcpProcess, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    session = agent.new(folder)
    agent.prompt(session, "hello")
    params = {"sessionId": session, "cwd": str(folder), "mcpServers": []}
    frames = [
        {"jsonrpc": "2.0", "id": number, "method": "session/load", "params": params}
        for number in range(900, 904)
    ]
    agent.send_together(frames)
    for frame in frames:
        agent.answer_to(frame["id"])
    since = len(agent.seen)
    assert agent.prompt(session, "again") == "end_turn"
    assert texts(agent.updates(session, since=since)) == "You said: again"


def test_an_mcp_server_at_no_address_is_no_fault_of_the_server(
    agent: AcpProcess, tmp_path: Path
) -> None:
    given = {"type": "http", "name": "odd", "url": "http://[", "headers": []}
    answer = agent.call("session/new", cwd=str(workspace(tmp_path)), mcpServers=[given])
    assert answer["sessionId"]


def test_what_a_client_wraps_a_prompt_in_is_no_part_of_the_title(
    agent: AcpProcess, tmp_path: Path
) -> None:
    """As avante.nvim sends a prompt: the open file, the text in a tag, and a note of its own."""
    folder = workspace(tmp_path)
    session = agent.new(folder)
    prompt = [
        {"type": "resource_link", "uri": f"file://{folder}/old.txt", "name": "old.txt"},
        {
            "type": "text",
            "text": "<previous_user_message>Two lines,\nplease</previous_user_message>",
        },
        {"type": "text", "text": "<system_context>Continuing from before</system_context>"},
    ]
    agent.call("session/prompt", sessionId=session, prompt=prompt)
    (listed,) = agent.call("session/list", cwd=str(folder))["sessions"]
    assert listed["title"] == "Two lines,"
    kept = agent.new(folder)
    agent.prompt(kept, "<b> is not closed here")
    assert agent.call("session/list")["sessions"][0]["title"] == "<b> is not closed here"
