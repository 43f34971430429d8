"""What a person says in the page of a chat: written, sent, queued, steered, stopped."""

import json
from typing import Any

from webview_chat import drawn, last_said, shown


def test_what_is_written_is_sent_and_comes_back_when_that_failed(open_webview, quiet):
    chat = shown(open_webview, quiet)
    page = chat.page
    field = page.get_by_role("textbox")
    chat.post({"type": "focus"})
    chat.wait_for(lambda: field.evaluate("(node) => node === document.activeElement"), "focus")
    page.keyboard.type("first line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second line")
    page.keyboard.press("Enter")
    sent = last_said(chat, "send")
    assert (sent["text"], sent["delivery"]) == ("first line\nsecond line", "auto")
    assert field.input_value() == ""
    chat.wait_for(lambda: "Sending" in chat.text(), "it is shown to be on its way")
    assert sent["key"] in json.dumps(chat.kept())
    page.keyboard.type("meanwhile")
    chat.post({"type": "sent", "key": sent["key"], "ok": False, "message": "The store is full."})
    chat.wait_for(lambda: "The store is full." in chat.text(), "why it failed")
    assert field.input_value() == "meanwhile\nfirst line\nsecond line"
    page.keyboard.press("Enter")
    again = chat.wait_for(lambda: chat.said("send")[1:], "it is sent again")[0]
    chat.post({"type": "sent", "key": again["key"], "ok": True})
    chat.wait_for(lambda: "Sending" not in chat.text(), "it has arrived")
    # What was said before comes back by the arrows, and what was being written after it.
    page.keyboard.type("new")
    page.keyboard.press("ArrowUp")
    assert field.input_value() == "meanwhile\nfirst line\nsecond line"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert field.input_value() == "first line\nsecond line"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert field.input_value() == "new"
    # While a word is composed, Enter belongs to the input method.
    field.evaluate(
        "(node) => node.dispatchEvent(new KeyboardEvent('keydown', "
        "{ key: 'Enter', isComposing: true, bubbles: true, cancelable: true }))"
    )
    assert field.input_value() == "new"
    assert len(chat.said("send")) == 2
    # Where there is no server nothing is taken away.
    chat.post({"type": "phase", "phase": {"state": "failed", "message": "gone", "lines": []}})
    drawn(chat)
    page.keyboard.press("Enter")
    chat.wait_for(lambda: "what you write stays here" in chat.text(), "why it stays")
    assert field.input_value() == "new"


def test_the_second_key_of_a_chord_writes_nothing_and_stops_nothing(open_webview, quiet):
    running = quiet["head"] | {"turn": {"state": "running"}}
    chat = shown(open_webview, quiet | {"head": running})
    field = chat.page.get_by_role("textbox")
    field.fill("so far")
    for second in ("a", "Enter", "Escape"):
        field.press("Control+Alt+j")
        field.press(second)
        field.press("b")  # the next one is the page's again
        field.press("Backspace")
    assert field.input_value() == "so far"
    assert chat.said("send") == chat.said("cancel") == []
    field.press("Escape")
    assert last_said(chat, "cancel")["scope"] == "turn"


def test_while_a_turn_runs_enter_queues_and_another_key_steers(open_webview, quiet):
    running = quiet["head"] | {"turn": {"state": "running"}}
    chat = shown(open_webview, quiet | {"head": running})
    page = chat.page
    field = page.get_by_role("textbox")
    field.fill("later")
    field.press("Enter")
    assert last_said(chat, "send")["delivery"] == "queue"
    field.fill("now")
    field.press("Control+Enter")
    assert last_said(chat, "send")["delivery"] == "steer"
    field.fill("by a button")
    page.get_by_role("button", name="Steer").click()
    assert last_said(chat, "send") | {"key": ""} == {
        "type": "send",
        "key": "",
        "text": "by a button",
        "delivery": "steer",
    }
    chat.post({"type": "look", "look": {"sendKey": "modEnter", "fontSize": 20, "showUsage": False}})
    drawn(chat)
    field.fill("one")
    field.press("Enter")
    assert field.input_value() == "one\n"
    field.press("Control+Enter")
    assert last_said(chat, "send")["text"] == "one\n"
    assert page.evaluate("() => getComputedStyle(document.body).fontSize") == "20px"
    queued: dict[str, Any] = {
        "id": "q1",
        "eventSeq": 7,
        "text": "tidy up",
        "delivery": "queue",
        "attachments": [],
        "editable": True,
    }
    chat.post({"type": "queue", "queue": [queued]})
    page.get_by_role("button", name="Send now").click()
    assert last_said(chat, "queueSteer") == {"type": "queueSteer", "eventSeq": 7}
    page.get_by_role("button", name="Edit").click()
    edited = page.get_by_label("Change what waits")
    assert edited.input_value() == "tidy up"
    edited.fill("tidy up all")
    edited.press("Enter")
    said = {"type": "queueEdit", "eventSeq": 7, "text": "tidy up all"}
    assert last_said(chat, "queueEdit") == said
    page.get_by_role("button", name="Remove").click()
    assert last_said(chat, "queueRemove") == {"type": "queueRemove", "eventSeq": 7}


def test_buttons_say_what_agents_call_their_modes_and_models(open_webview, quiet):
    head = quiet["head"] | {"model": "a/big", "agentModel": "codex Large/2", "agentMode": "Coder"}
    chat = shown(open_webview, quiet | {"head": head})
    model = chat.page.get_by_role(
        "button", name="Model: a/big, codex Large/2. Choose another one", exact=True
    )
    assert model.inner_text().strip() == "big, codex Large/2"
    model.click()
    assert last_said(chat, "command")["command"] == "callboard.selectModel"
    del head["model"]
    chat.post({"type": "all", "all": quiet | {"head": head}})
    drawn(chat)
    chat.page.get_by_role("button", name="Model: codex Large/2. Choose another one").click()
    mode = chat.page.get_by_role("button", name="Mode: work, Coder. Choose another one")
    assert mode.inner_text().strip() == "work, Coder"
    mode.click()
    assert last_said(chat, "command")["command"] == "callboard.selectMode"


def test_files_are_found_and_chosen_by_keys(open_webview, quiet, everything):
    chat = shown(open_webview, quiet | {"context": everything["context"]})
    page = chat.page
    field = page.get_by_role("textbox")
    field.press_sequentially("look at me@home and @par")
    chat.wait_for(
        lambda: [said["query"] for said in chat.said("findFiles")][-1:] == ["par"],
        "it asks for the files of the whole word",
    )
    files = [{"label": f"src/parser{n}.py", "path": f"/w/src/parser{n}.py"} for n in range(3)]
    chat.post({"type": "files", "query": "pa", "files": [{"label": "late", "path": "late"}]})
    chat.post({"type": "files", "query": "par", "files": files})
    chat.wait_for(lambda: page.get_by_role("option").count() == 3, "the files")
    assert chat.axe() == []
    field.press("ArrowDown")
    field.press("Enter")
    assert last_said(chat, "attach") == {"type": "attach", "file": files[1]}
    assert field.input_value() == "look at me@home and @src/parser1.py "
    assert chat.said("send") == []
    field.press_sequentially("@x")
    chat.post({"type": "files", "query": "x", "files": files})
    chat.wait_for(lambda: page.get_by_role("option").count() == 3, "files again")
    field.press("Escape")
    chat.wait_for(lambda: page.get_by_role("option").count() == 0, "it is closed")
    page.get_by_role("button", name="Send parser.py:10–42").click()
    assert last_said(chat, "chip") == {"type": "chip", "id": "x1", "do": "toggle"}
    page.get_by_role("button", name="Remove README.md").click()
    assert last_said(chat, "chip") == {"type": "chip", "id": "x2", "do": "remove"}


def test_stop_says_what_it_stops(open_webview, quiet):
    turn = {"state": "running", "startedAt": "2025-01-01T00:00:00Z"}
    head = quiet["head"] | {"turn": turn}
    chat = shown(open_webview, quiet | {"head": head})
    page = chat.page
    field = page.get_by_role("textbox")
    field.press_sequentially("@a")
    chat.post({"type": "files", "query": "a", "files": [{"label": "a", "path": "a"}]})
    chat.wait_for(lambda: page.get_by_role("option").count() == 1, "a popup")
    field.press("Escape")  # closes what is open, first
    assert chat.said("cancel") == []
    field.press("Escape")
    assert last_said(chat, "cancel") == {"type": "cancel", "scope": "turn"}
    # Where others may be meant too, it is asked which.
    chat.post({"type": "head", "head": head | {"agentsRunning": 2, "inGroup": True}})
    drawn(chat)
    field.press("Escape")
    chat.wait_for(lambda: page.get_by_role("menuitem").count() == 3, "the ways to stop")
    assert chat.axe() == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert last_said(chat, "cancel") == {"type": "cancel", "scope": "tree"}
    page.get_by_role("button", name="Stop…").click()
    page.get_by_role("menuitem", name="Stop the whole group…").click()
    assert last_said(chat, "interrupt") == {"type": "interrupt", "what": "group"}
    since = page.evaluate("() => new Date().toISOString()")
    stopping = head | {"turn": turn | {"state": "stopping", "stoppingSince": since}}
    chat.post({"type": "head", "head": stopping})
    chat.wait_for(lambda: "Stopping" in chat.text(), "that it is being stopped")
    late = {**turn, "state": "stopping", "stoppingSince": "2025-01-01T00:00:01Z"}
    chat.post({"type": "head", "head": head | {"turn": late}})
    page.get_by_role("button", name="Force stop").click()
    assert last_said(chat, "interrupt") == {"type": "interrupt", "what": "force"}
