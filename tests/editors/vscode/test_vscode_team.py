"""The tree of agents and the board of their tasks, driven by hand, against the real server."""

import re

import pytest

from harness.scripted_team import FEATURES, SCENARIO


def has_row(window, pane, pattern):
    window.wait_for(
        lambda: any(re.search(pattern, row) for row in window.rows(pane)),
        f"{pattern!r} in {pane}, which has {window.rows(pane)}",
    )


@pytest.fixture
def window(open_code):
    code = open_code(scenario=SCENARIO, environ=FEATURES)
    window = code.open(size=(1400, 900))
    window.view("Callboard")
    window.command("Callboard: New Session")
    window.wait_for(
        lambda: window.chat().evaluate("() => document.activeElement.matches('textarea')"),
        "the composer to have the focus",
    )
    return window


def spawn(window, name):
    window.command("Callboard: Start an Agent")
    window.page.get_by_text("A name for the agent").wait_for()
    window.answer(name)
    window.page.get_by_text(f"What is {name} to do?").wait_for()
    window.answer("Do it.")


def test_a_team_is_led_from_its_tree_and_from_its_board(window):
    """In one window, since its start takes longer than all of this."""
    lead_from_the_tree(window)
    drive_the_board(window)


def lead_from_the_tree(window):
    window.unfold("Agents")
    window.wait_for(
        lambda: "has no agents below it" in window.pane("Agents").inner_text(), "no agents"
    )
    for name in ("asker", "sleeper", "typist", "idler"):
        spawn(window, name)
    # Not before: what is chosen there is shown, and with it the list.
    selected = window.row("Sessions", re.compile("^session"))
    window.wait_for(
        lambda: selected.get_attribute("aria-selected") == "true", "the session to be selected"
    )
    window.unfold("Sessions", fold=True)
    has_row(window, "Agents", "asker ?waits for a reply")
    has_row(window, "Agents", r"asks: Which of the two\?")
    has_row(window, "Agents", r"sleeper ?running \d+ s")
    has_row(window, "Agents", "typist ?waits for approval")
    has_row(window, "Agents", "idler ?completed")
    window.screenshot("team-agents")
    window.act(window.row("Agents", re.compile("^asks: Which")), "Reply to an Agent")
    window.page.get_by_text("asker asks: Which of the two?").wait_for()
    window.answer("The second.")
    has_row(window, "Agents", "asker ?completed .*1.2k tokens")
    has_row(window, "Agents", "reported: Then the second.")
    window.act(window.row("Agents", re.compile("^sleeper")), "Stop an Agent at Once")
    has_row(window, "Agents", "sleeper ?interrupted")


def board(window):
    return window.wait_for(lambda: window.frame(".columns, .nothing"), "the board")


def on_board(window, text):
    window.wait_for(lambda: text in (board(window).inner_text("body")), f"{text!r} on the board")


def drive_the_board(window):
    window.command("Callboard: New Group of Agents")
    window.page.get_by_text("What is the group to do first?").wait_for()
    window.answer("Count the stock")
    window.pick("In the session that is open")
    on_board(window, "Count the stock")
    window.screenshot("team-board-first")
    board(window).get_by_role("button", name="Add a task").click()
    window.page.get_by_text("What is to be done?").wait_for()
    window.answer("Write it down")
    window.page.get_by_text('What must be done before "Write it down"?').wait_for()
    window.page.locator(".quick-input-list .monaco-list-row").first.click()
    window.page.keyboard.press("Enter")
    on_board(window, 'waits for "Count the stock"')
    board(window).get_by_role("button", name="Count the stock", exact=True).focus()
    window.page.keyboard.press("c")
    on_board(window, 'this session has "Count the stock" now')
    window.wait_for(
        lambda: board(window).locator(".column.active [data-task]").count() == 1, "it is active"
    )
    window.page.keyboard.press("c")
    on_board(window, 'Cannot claim "Count the stock"')
    window.screenshot("team-board-refused")
    window.page.keyboard.press("d")
    window.page.get_by_text('What came of "Count the stock"?').wait_for()
    window.answer("12 boxes.")
    window.wait_for(
        lambda: board(window).locator(".column.done [data-task]").count() == 1, "it is done"
    )
    assert window.axe(board(window)) == []
    window.unfold("Agents", fold=True)
    window.unfold("Tasks")
    has_row(window, "Tasks", r"Ready \(1\)")
    has_row(window, "Tasks", "Write it down ?required")
    window.act(window.row("Tasks", "Write it down"), "Claim")
    window.wait_for(
        lambda: board(window).locator(".column.active [data-task]").count() == 1, "it is claimed"
    )
    window.screenshot("team-board")
    root = board(window).evaluate("() => document.body.dataset.root")
    window.wait_for(lambda: window.keeps_tab(root), "the tab of the board in what is kept")
    window.reload()
    # By itself.
    on_board(window, "Write it down")
    assert board(window).evaluate("() => document.body.dataset.root") == root
    window.wait_for(
        lambda: board(window).locator(".column.active [data-task]").count() == 1, "it as it was"
    )
