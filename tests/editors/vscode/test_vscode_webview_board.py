"""The page of a task board: what it shows, and what it tells the extension of what a person does."""

from typing import Any

import pytest

TITLES = {
    "ready": "Ready",
    "active": "Active",
    "blocked": "Blocked",
    "waiting": "Waiting",
    "done": "Done",
    "cancelled": "Cancelled",
}
MINE = ["start", "complete", "block", "release", "assign", "cancel"]


def card(name: str, verbs: list[str], **fields: Any) -> dict[str, Any]:
    return {
        "id": f"tsk_{name}",
        "title": f"Task {name}",
        "facts": [],
        "notes": [],
        "verbs": verbs,
        **fields,
    }


def board(cards: dict[str, list[dict[str, Any]]], **fields: Any) -> dict[str, Any]:
    columns = [
        {"name": name, "title": title, "count": len(cards.get(name, [])), "cards": cards.get(name, []), "before": 0, "after": 0}
        for name, title in TITLES.items()
    ]  # fmt: skip
    return {
        "type": "board",
        "board": {
            "title": "Mend the stock",
            "counts": f"{sum(map(len, cards.values()))} tasks",
            "members": ["root", "docs (running)", "numbers (completed)"],
            "columns": columns,
            "messages": ["docs → root: Which of the two?  not read yet"],
            "empty": False,
            **fields,
        },
    }


CARDS = {
    "ready": [
        card("parse", ["claim", "assign", "spawn", "cancel"]),
        card("sums", ["claim", "assign", "spawn", "cancel"], facts=["optional"]),
    ],
    "active": [
        card("docs", ["assign", "cancel"], owner="docs", facts=["in progress"]),
        card("mine", MINE, owner="root"),
        card(
            "stuck",
            ["assign", "cancel"],
            owner="numbers",
            notes=[
                {"text": "nobody is at it: numbers is completed", "tone": "warning"},
                {"text": '"Task docs" changes README.md, too', "tone": "warning"},
            ],
        ),
    ],
    "blocked": [
        card(
            "key",
            ["assign", "cancel"],
            owner="docs",
            notes=[{"text": "There is no key for the service", "tone": "error"}],
        )
    ],
    "waiting": [
        card(
            "ship",
            ["cancel"],
            notes=[
                {"text": 'cannot become ready: "Task key" is blocked', "tone": "error"},
                {"text": 'waits for "Task parse"', "tone": "plain"},
            ],
        )
    ],
    "done": [
        card(
            "plan",
            [],
            owner="root",
            facts=[],
            notes=[{"text": "Planned in four steps.", "tone": "plain"}],
        )
    ],
}
FULL = board(CARDS, required={"text": "6 required not done", "done": False})


@pytest.fixture
def open_board(open_webview):
    def opened(message=FULL, **settings):
        page = open_webview(
            "board", **{"size": (1280, 760), "body": {"root": "ses_root"}, **settings}
        )
        page.wait_for(lambda: page.said("ready"), "the page's first word")
        page.post(message)
        page.wait_for(
            lambda: page.page.get_by_role("button", name="Add a task").count(), "the board"
        )
        return page

    return opened


def task(page, name):
    return page.page.get_by_role("button", name=f"Task {name}", exact=True)


def focused(page):
    return page.page.evaluate("() => document.activeElement.textContent")


@pytest.mark.parametrize("theme", ["dark", "light", "contrast"])
@pytest.mark.parametrize("size", [(1280, 760), (420, 760)])
def test_a_board_is_drawn_for_everybody(open_board, theme, size):
    page = open_board(theme=theme, size=size)
    for name in ("parse", "docs", "key", "ship", "plan"):
        assert task(page, name).is_visible()
    page.screenshot(f"board-{theme}-{size[0]}")
    assert page.axe() == []
    assert page.kept() == {"root": "ses_root"}


def test_arrows_go_from_task_to_task_and_letters_act(open_board):
    page = open_board()
    task(page, "parse").focus()
    for key, there in [
        ("ArrowDown", "Task sums"),
        ("ArrowUp", "Task parse"),
        ("ArrowRight", "Task docs"),
        ("End", "Task stuck"),
        ("ArrowRight", "Task plan"),
        ("ArrowLeft", "Task docs"),
        ("ArrowDown", "Task mine"),
    ]:
        page.page.keyboard.press(key)
        assert focused(page) == there, key
    for key, verb in [("s", "start"), ("d", "complete"), ("b", "block"), ("u", "release"), ("a", "assign"),
                      ("x", "cancel"), ("c", "claim"), ("g", "spawn")]:  # fmt: skip
        page.page.keyboard.press(key)
        assert page.said("do")[-1] == {"type": "do", "taskId": "tsk_mine", "verb": verb}
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("n")
    page.page.keyboard.press("m")
    assert [one["type"] for one in page.said()[-3:]] == ["show", "add", "write"]


def test_a_task_is_moved_by_keys_to_where_it_can_go(open_board):
    page = open_board()
    for name, key, to in [
        ("mine", "Shift+ArrowRight", "done"),
        ("mine", "Shift+ArrowLeft", "ready"),
        ("docs", "Shift+ArrowRight", "cancelled"),
        ("key", "Shift+ArrowLeft", "active"),
        ("parse", "Shift+ArrowRight", "active"),
        # Nowhere to go: the extension says why.
        ("plan", "Shift+ArrowLeft", "active"),
    ]:
        task(page, name).focus()
        page.page.keyboard.press(key)
        assert page.said("move")[-1] == {"type": "move", "taskId": f"tsk_{name}", "to": to}


def test_a_task_is_dragged_into_a_column(open_board):
    page = open_board()
    page.page.locator('[data-task="tsk_parse"]').drag_to(page.page.locator(".column.active h2"))
    page.wait_for(lambda: page.said("move"), "the move")
    assert page.said("move") == [{"type": "move", "taskId": "tsk_parse", "to": "active"}]


def test_what_came_of_it_is_read_out_and_the_moved_card_keeps_the_focus(open_board):
    page = open_board()
    task(page, "mine").focus()
    page.page.keyboard.press("d")
    moved = {
        **CARDS,
        "active": [each for each in CARDS["active"] if each["id"] != "tsk_mine"],
        "done": [*CARDS["done"], card("mine", [], owner="root", facts=[])],
    }
    page.post({"type": "said", "text": '"Task mine" is done', "failed": False}, board(moved))
    page.wait_for(
        lambda: page.page.locator('.column.done [data-task="tsk_mine"]').count(), "the move"
    )
    assert focused(page) == "Task mine"
    assert page.page.locator('[data-live="polite"]').text_content() == '"Task mine" is done'
    page.post({"type": "said", "text": "Cannot claim it: docs has it", "failed": True})
    alert = page.page.locator('[data-live="assertive"]')
    page.wait_for(lambda: alert.text_content() == "Cannot claim it: docs has it", "the alert")
    assert page.page.get_by_text("Cannot claim it: docs has it").first.is_visible()
    page.page.get_by_role("button", name="Dismiss").click()
    page.wait_for(lambda: page.page.locator("main .said").count() == 0, "it to be gone")


def test_what_a_board_cannot_be_told_stands_above_what_it_had(open_board):
    page = open_board()
    page.post({**FULL, "notice": "The server has ended; it is started again…"})
    page.wait_for(lambda: "started again" in page.text(), "the notice")
    assert task(page, "docs").is_visible()
    page.page.get_by_role("button", name="Ask again").click()
    assert page.said("refresh")
    page.screenshot("board-notice")


def test_a_board_that_nobody_has_begun_says_how(open_board):
    page = open_board(board({}, empty=True, members=[], messages=[]))
    assert "There is no task yet" in page.text()
    page.page.get_by_role("button", name="Add a task").click()
    assert page.said("add")
    assert page.axe() == []
    page.screenshot("board-empty")


def test_an_empty_column_leaves_its_room_to_the_others_and_takes_what_is_dropped(open_board):
    cards = {"ready": CARDS["ready"], "done": CARDS["done"]}
    page = open_board(board(cards))
    widths = page.page.locator(".column").evaluate_all(
        "(all) => Object.fromEntries(all.map((it) => [it.classList[1], it.getBoundingClientRect().width]))"
    )
    assert min(widths["ready"], widths["done"]) > 8 * max(
        widths[name] for name in ("waiting", "active", "blocked", "cancelled")
    )
    for name in ("Waiting", "Active", "Blocked", "Cancelled"):
        assert page.page.get_by_role("heading", name=name).is_visible()
    page.page.locator('[data-task="tsk_parse"]').drag_to(page.page.locator(".column.active"))
    page.wait_for(lambda: page.said("move"), "the move")
    assert page.said("move") == [{"type": "move", "taskId": "tsk_parse", "to": "active"}]
    assert page.axe() == []
    page.screenshot("board-empty-columns")


def test_titles_that_hold_anything_stay_text(open_board):
    nasty = '<img src=x onerror="alert(1)"> [x](command:y) **b** $(rocket) שלום ' + "x" * 300
    cards = {
        "active": [card("a", MINE, title=nasty, owner=nasty, notes=[{"text": nasty, "tone": "error"}])],
        "ready": [card(f"n{n}", ["claim"]) for n in range(40)],
    }  # fmt: skip
    page = open_board(board(cards, title=nasty, members=[nasty], messages=[nasty]), size=(900, 700))
    assert page.page.locator("img").count() == 0
    assert nasty in page.text()
    wide = page.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    assert page.axe() == []
    page.screenshot("board-nasty")
