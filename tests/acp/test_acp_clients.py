"""Clients that others have made work with ``callboard serve --acp``: the two SDKs' and acpx.

Each talks to real agents through pipes; every frame of both directions is held against the published schema.
"""

from acp_clients import Acpx, Place, SdkClient

from harness.process import PATIENCE_S


def new(client: SdkClient, place: Place) -> str:
    client.connect()
    return client.do("session/new", cwd=str(place.cwd))["sessionId"]


def test_sdk_turns_with_a_tool_that_is_denied_and_then_allowed(
    client: SdkClient, place: Place
) -> None:
    hello = client.connect()
    assert hello["agentCapabilities"]["loadSession"] is True
    client.do("authenticate", methodId=hello["authMethods"][0]["id"])
    session = client.do("session/new", cwd=str(place.cwd))["sessionId"]

    client.do("answer", kinds=["reject_once"])
    assert (
        client.do("session/prompt", sessionId=session, text="write it")["stopReason"] == "end_turn"
    )
    assert client.text() == "I write it.Then not."
    assert client.updates("tool_call_update")[-1]["status"] == "failed"
    assert not (place.cwd / "hello.txt").exists()

    client.heard.clear()
    client.do("answer", kinds=["allow_once"])
    assert (
        client.do("session/prompt", sessionId=session, text="write it")["stopReason"] == "end_turn"
    )
    assert client.text() == "I write it.It is written."
    assert client.text("agent_thought_chunk") == "A file it is."
    [call] = client.updates("tool_call")
    assert call["kind"] == "edit"
    assert client.updates("tool_call_update")[-1]["status"] == "completed"
    assert (place.cwd / "hello.txt").read_text() == "Hello.\n"
    [asked] = [message for message in client.heard if "asked" in message]
    [diff] = asked["asked"]["content"]
    assert (diff["type"], diff["newText"]) == ("diff", "Hello.\n")
    assert {"allow_once", "allow_always", "reject_once"} <= {o["kind"] for o in asked["options"]}
    client.leave()


def test_sdk_cancels_a_turn_that_streams_and_one_that_asks(client: SdkClient, place: Place) -> None:
    session = new(client, place)
    turn = client.start("session/prompt", sessionId=session, text="wait for it")
    client.until(lambda m: m.get("update", {}).get("sessionUpdate") == "agent_message_chunk")
    client.do("session/cancel", sessionId=session)
    assert client.result(turn)["stopReason"] == "cancelled"

    turn = client.start("session/prompt", sessionId=session, text="write it")
    client.until(lambda m: "asked" in m)
    client.do("session/cancel", sessionId=session)
    client.do("answer", kinds=["cancelled"])
    assert client.result(turn)["stopReason"] == "cancelled"
    assert not (place.cwd / "hello.txt").exists()

    client.heard.clear()
    assert client.do("session/prompt", sessionId=session, text="hi")["stopReason"] == "end_turn"
    assert client.text() == "Hello from the script."
    client.leave()


def test_sdk_comes_back_in_fresh_processes(client: SdkClient, place: Place) -> None:
    session = new(client, place)
    client.do("answer", kinds=["allow_once"])
    client.do("session/prompt", sessionId=session, text="write it")
    client.leave()

    client.heard.clear()
    client.connect()
    client.do("session/load", sessionId=session, cwd=str(place.cwd))
    client.do("session/list", cwd=str(place.cwd))  # its answer comes after all that was replayed
    assert client.text("user_message_chunk") == "write it"
    assert client.text() == "I write it.It is written."
    assert client.text("agent_thought_chunk") == "A file it is."
    [call] = client.updates("tool_call")
    assert [call, *client.updates("tool_call_update")][-1]["status"] == "completed"
    client.leave()

    client.heard.clear()
    client.connect()
    client.do("session/resume", sessionId=session, cwd=str(place.cwd))
    assert client.do("session/prompt", sessionId=session, text="hi")["stopReason"] == "end_turn"
    assert client.text() == "Hello from the script."
    assert not client.updates("tool_call")

    listed = client.do("session/list", cwd=str(place.cwd))["sessions"]
    assert [(each["sessionId"], each["cwd"]) for each in listed] == [(session, str(place.cwd))]
    client.do("session/close", sessionId=session)
    client.do("session/load", sessionId=session, cwd=str(place.cwd))
    client.do("session/delete", sessionId=session)
    assert client.do("session/list", cwd=str(place.cwd))["sessions"] == []
    unknown = client.answer(client.start("session/load", sessionId=session, cwd=str(place.cwd)))
    assert unknown["error"]["code"] == -32002
    client.leave()


def test_sdk_sets_mode_and_options(client: SdkClient, place: Place) -> None:
    client.connect()
    made = client.do("session/new", cwd=str(place.cwd))
    session = made["sessionId"]
    assert {mode["id"] for mode in made["modes"]["availableModes"]} == {"ask", "plan", "work"}
    options = {option["id"]: option for option in made["configOptions"]}
    assert {option["category"] for option in options.values()} >= {"mode", "model"}

    client.do("session/set_mode", sessionId=session, modeId="plan")
    options = {
        option["id"]: option["currentValue"]
        for option in client.do(
            "session/set_config_option",
            sessionId=session,
            configId="model",
            value="scripted/demo",
        )["configOptions"]
    }
    assert (options["mode"], options["model"]) == ("plan", "scripted/demo")
    after = client.do(
        "session/set_config_option", sessionId=session, configId="mode", value="work"
    )["configOptions"]
    assert {o["id"]: o["currentValue"] for o in after}["mode"] == "work"
    wrong = client.answer(client.start("session/set_mode", sessionId=session, modeId="fly"))
    assert wrong["error"]["code"] == -32602
    client.leave()
    assert client.updates("current_mode_update")[-1]["currentModeId"] == "work"


def test_two_editors_share_a_session_and_the_first_answer_wins(place: Place) -> None:
    with SdkClient(place, "typescript") as first, SdkClient(place, "python") as second:
        session = new(first, place)
        second.connect()
        second.do("session/load", sessionId=session, cwd=str(place.cwd))
        turn = first.start("session/prompt", sessionId=session, text="write it")
        call = first.until(lambda m: "asked" in m)["asked"]["toolCallId"]
        assert second.until(lambda m: "asked" in m)["asked"]["toolCallId"] == call

        second.do("answer", kinds=["allow_once"])
        assert first.result(turn)["stopReason"] == "end_turn"
        if not any("withdrawn" in message for message in first.heard):
            first.until(lambda m: "withdrawn" in m)
        assert first.text() == "I write it.It is written."
        while second.text() != "I write it.It is written.":
            second.until(lambda m: "update" in m)
        assert second.text("user_message_chunk") == "write it"
        assert second.updates("tool_call_update")[-1]["status"] == "completed"
        assert (place.cwd / "hello.txt").read_text() == "Hello.\n"
        first.leave()
        second.leave()


def test_acpx_executes_once(place: Place) -> None:
    acpx = Acpx(place)
    denied = acpx.run("exec", "write it", options=("--deny-all", "--format", "quiet"))
    assert (denied.returncode, denied.stdout.strip()) == (5, "I write it.Then not.")
    assert not (place.cwd / "hello.txt").exists()
    allowed = acpx.run("exec", "write it", options=("--approve-all",))
    assert allowed.returncode == 0, allowed.stderr
    assert "It is written." in allowed.stdout and "end_turn" in allowed.stdout
    assert (place.cwd / "hello.txt").read_text() == "Hello.\n"


def test_acpx_keeps_a_session_over_many_processes(place: Place) -> None:
    acpx = Acpx(place)
    made = acpx.run("sessions", "new", "--name", "one")
    assert made.returncode == 0, made.stderr
    session = made.stdout.strip()
    said = acpx.run("prompt", "-s", "one", "hi", options=("--format", "quiet"))
    assert (said.returncode, said.stdout.strip()) == (0, "Hello from the script."), said.stderr
    changed = acpx.run("set", "-s", "one", "mode", "plan")
    assert changed.returncode == 0, changed.stderr
    again = acpx.run("prompt", "-s", "one", "hi again", options=("--format", "quiet"))
    assert (again.returncode, again.stdout.strip()) == (0, "Hello from the script."), again.stderr
    assert session in acpx.run("sessions", "list").stdout
    closed = acpx.run("sessions", "close", "one")
    assert closed.returncode == 0, closed.stderr
    kinds = place.judge()
    assert "session/set_config_option" in kinds
    assert "session/load" in kinds or "session/resume" in kinds
    assert kinds.count("session/new") == 1, "it was begun anew instead of being taken up"


def test_acpx_cancels(place: Place) -> None:
    acpx = Acpx(place)
    assert acpx.run("sessions", "new", "--name", "one").returncode == 0
    prompt = acpx.start("prompt", "-s", "one", "wait for it", options=("--format", "json"))
    assert prompt.stdout is not None
    told = ""
    while "Waiting." not in told:
        told = prompt.stdout.readline()
        assert told
    cancelled = acpx.run("cancel", "-s", "one")
    rest, _ = prompt.communicate(timeout=PATIENCE_S)
    assert cancelled.returncode == 0, cancelled.stderr
    assert prompt.returncode == 0 and '"stopReason":"cancelled"' in rest, rest
    assert acpx.run("sessions", "close", "one").returncode == 0
    assert "session/cancel" in place.judge()
