"""Approvals in the page of a chat: answered by a choice, and by nothing else."""

from webview_chat import drawn, last_said, live, settle, shown, start_clock, stop_clock


def test_an_approval_is_answered_by_nothing_but_a_choice(open_webview, quiet, everything):
    asked = next(card for card in everything["cards"] if card["id"] == "c6")
    chat = shown(open_webview, quiet, size=(300, 460))
    page = chat.page
    card = page.locator("[data-approval=ask1]")
    # It comes, and a key and a click that were meant for something else come with it.
    stop_clock(chat)
    chat.post({"type": "news", "cards": [asked]})
    chat.wait_for(lambda: card.count() == 1, "the approval")
    # It is higher than the list, and what is asked is in view rather than the answers.
    drawn(chat)
    tops = "() => ['.scroller', '.command'].map((it) => document.querySelector(it).getBoundingClientRect().top)"
    top, command = page.evaluate(tops)
    assert top <= command < top + 150
    card.focus()
    page.keyboard.press("Alt+1")
    card.locator(".choice").first.click(force=True)
    chat.wait_for(lambda: "has only just come" in card.inner_text(), "they are not taken")
    start_clock(chat)
    settle(chat, "ask1")
    # Its text has the focus, never a choice; Enter alone, and digits alone, do nothing.
    chat.post({"type": "focus", "approvalId": "ask1"})
    chat.wait_for(lambda: card.evaluate("(node) => node === document.activeElement"), "focus")
    for key in ("Enter", "Space", "1", "Control+1", "Escape"):
        page.keyboard.press(key)
    page.get_by_role("textbox").focus()
    page.keyboard.press("Alt+1")
    assert chat.said("answer") == []
    card.focus()
    page.keyboard.press("Alt+2")
    said = {"type": "answer", "approvalId": "ask1", "optionId": "session"}
    assert last_said(chat, "answer") == said
    # While it is on its way nothing more is sent; when it did not count, it can be answered again.
    page.keyboard.press("Alt+1")
    assert len(chat.said("answer")) == 1
    chat.post({"type": "refused", "approvalId": "ask1", "message": "The server has ended."})
    chat.wait_for(lambda: "The server has ended." in card.inner_text(), "why it did not count")
    # Denied with a note, by keys.
    card.focus()
    page.keyboard.press("Alt+5")
    page.keyboard.type("use the trash")
    page.keyboard.press("Enter")
    note = {"type": "answer", "approvalId": "ask1", "optionId": "deny", "note": "use the trash"}
    assert last_said(chat, "answer") == note
    done = asked | {"tone": "stopped", "state": "denied"}
    done["approval"] = asked["approval"] | {"answered": "Denied by me: use the trash"}
    chat.post({"type": "news", "cards": [done]})
    chat.wait_for(lambda: card.count() == 0, "it is one line")
    assert "Denied by me: use the trash" in chat.text()
    assert chat.axe() == []


def test_answers_of_an_approval_take_three_lines_in_a_narrow_view(open_webview, quiet, everything):
    asked = next(card for card in everything["cards"] if card["id"] == "c6")
    never = {"number": 6, "optionId": "never", "label": "Always reject `find` in /var/cache/parser",
             "short": "never", "allows": False, "lasts": True}  # fmt: skip
    asked["approval"]["choices"].append(never)
    asked["speaker"] = "Agent"
    chat = shown(open_webview, quiet | {"cards": [asked]}, theme="light", size=(300, 900))
    settle(chat, "ask1")
    tops = chat.page.locator("[data-approval=ask1] .choice").evaluate_all(
        "(all) => all.map((it) => Math.round(it.getBoundingClientRect().top))"
    )
    assert len(tops) == 6
    assert len(set(tops)) == 3
    assert chat.axe() == []
    chat.screenshot("webview-approval-light-300")


def test_a_question_of_an_agent_below_is_answered_in_words(open_webview, quiet, everything):
    chat = shown(open_webview, quiet | {"approvals": everything["approvals"]})
    page = chat.page
    assert "asked by reviewer › docs" in chat.text()
    settle(chat, "ask2")
    page.get_by_role("button", name="Answer").click()
    field = page.get_by_label("Your answer")
    field.press("Enter")
    assert chat.said("answer") == []  # nothing was written
    field.press("Escape")
    chat.wait_for(lambda: "it still waits" in chat.text(), "it was left")
    page.get_by_role("button", name="Answer").click()
    page.get_by_label("Your answer").fill("2.0")
    page.get_by_label("Your answer").press("Enter")
    said = {"type": "answer", "approvalId": "ask2", "optionId": "answer", "note": "2.0"}
    assert last_said(chat, "answer") == said
    # One ends: for a moment nothing answers the one that has moved to its place.
    third = {**everything["approvals"][0], "approvalId": "ask3", "title": "And which branch?"}
    chat.post({"type": "approvals", "approvals": [*everything["approvals"], third], "elsewhere": 0})
    chat.wait_for(lambda: page.locator("[data-approval=ask3]").count() == 1, "another question")
    assert "And which branch?" in live(chat, "assertive")
    settle(chat, "ask3")
    stop_clock(chat)
    chat.post({"type": "approvals", "approvals": [third], "elsewhere": 2})
    chat.wait_for(lambda: page.locator("[data-approval=ask2]").count() == 0, "the first is gone")
    page.locator("[data-approval=ask3] .choice").last.click(force=True)
    chat.wait_for(lambda: "has just ended" in chat.text(), "the click is not taken")
    assert len(chat.said("answer")) == 1
    page.get_by_role("button", name="2 approvals wait in other sessions").click()
    assert last_said(chat, "command")["command"] == "callboard.nextApproval"
