"""The page of a chat, in a plain browser: what it shows of what it is told, and what is offered with that.

A page that breaks its content policy, asks for anything from elsewhere or throws fails its test at the end.
"""

from typing import Any

import pytest
from webview_chat import answer, approval, last_said, live, prompt, settle, shown, tell


@pytest.mark.parametrize(("theme", "width"), [("dark", 220), ("light", 900), ("contrast", 420)])
def test_everything_is_shown_accessibly_at_every_width(open_webview, everything, theme, width):
    chat = shown(open_webview, everything, theme=theme, size=(width, 3600))
    page = chat.page
    for card in everything["cards"]:
        assert page.locator(f"[data-card={card['id']}]").count() == 1
    page.get_by_role("button", name="Plan").click()
    page.get_by_role("button", name="Thought").click()
    settle(chat, "ask1")
    assert chat.axe() == []
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    outside = page.evaluate(
        """() => [...document.querySelectorAll("button, textarea, h1, h2, h3")]
          .filter((each) => !each.matches(".skip, .unseen"))
          .map((each) => [each, each.getBoundingClientRect()])
          .filter(([, box]) => box.width > 0 && (box.left < 0 || box.right > innerWidth + 1))
          .map(([each]) => each.outerHTML.slice(0, 120))"""
    )
    assert outside == []
    # All of the command is there, however long it is.
    command = page.locator("[data-approval=ask1] .command")
    assert approval(everything)["subject"]["command"] in (command.text_content() or "")
    assert command.evaluate("(node) => node.scrollWidth - node.clientWidth") <= 0
    assert page.get_by_role("log").count() == 1
    assert "systemctl --user restart" in live(chat, "assertive")
    chat.screenshot(f"webview-chat-{theme}-{width}")


HOSTILE = """\
<script>window.hacked = 1</script><img src="https://elsewhere.test/a.png" onerror="window.hacked = 1">
<iframe src="https://elsewhere.test"></iframe> <b onclick="window.hacked=1">bold</b>

![a *picture*](https://elsewhere.test/b.png) ![data](data:image/png;base64,AAAA)

[run](javascript:window.hacked=1) [order](command:workbench.action.quit) [code](vscode://x/y)
[blob](data:text/html,<script>window.hacked=1</script>) [sly](JaVaScRiPt&#58;alert(1))
[slash](//elsewhere.test/x) [encoded](javascript%3Aalert(1))

[https://good.test/login](https://evil.test/login) and <https://plain.test/a>
[the file](src/a%20b.py#L7) [absolute](/etc/hosts:3)

| a | b |
|---|---|
| <img src=x onerror=alert(1)> | `<svg onload=alert(1)>` |

```html
<script>window.hacked = 1</script>
```

[ref]: javascript:alert(1)
[ref] "quoted' title"
"""


def test_text_of_others_does_nothing(open_webview, quiet):
    line = "x" * 1_000_000
    nasty = '<img src=x onerror="window.hacked=1">'
    cards = [
        prompt(1, HOSTILE),
        answer("a1", HOSTILE),
        answer("a2", HOSTILE, streaming=True),
        answer("a3", line),
        prompt(2, line),
        {
            "id": "c1",
            "kind": "tool",
            "speaker": nasty,
            "title": f"{nasty} $(zap) {'long ' * 500}",
            "name": nasty,
            "tool": nasty,
            "tone": "ok",
            "state": nasty,
            "output": {"lines": [nasty, line], "above": 0, "below": 0, "cut": False},
            "changes": [],
            "files": [{"label": nasty, "path": nasty}],
        },
        {"id": "n1", "kind": "notice", "text": nasty},
        {"id": "e1", "kind": "error", "text": nasty, "about": nasty, "retryable": False},
    ]
    everything = quiet | {"cards": cards, "head": quiet["head"] | {"title": nasty, "model": nasty}}
    chat = shown(open_webview, everything, size=(600, 900))
    page = chat.page
    page.locator("[data-card=c1] button.row").click()
    assert page.evaluate("() => window.hacked") is None
    for tag in ("script", "img", "iframe", "svg", "b", "object", "style", "form"):
        assert page.locator(f"#root {tag}").count() == 0, tag
    hrefs = page.eval_on_selector_all("#root a", "(all) => all.map((a) => a.getAttribute('href'))")
    assert {href for href in hrefs if not href.startswith(("https://", "#"))} == set()
    # A link that claims to lead elsewhere says where it leads.
    assert "https://good.test/login (evil.test)" in (
        page.locator("[data-card=a1]").text_content() or ""
    )
    page.locator("[data-card=a1]").get_by_text("https://good.test/login").click()
    assert last_said(chat, "openLink") == {"type": "openLink", "href": "https://evil.test/login"}
    page.locator("[data-card=a1]").get_by_text("the file").click()
    file = {"label": "src/a b.py", "path": "src/a b.py", "line": 7}
    assert last_said(chat, "openFile") == {"type": "openFile", "file": file}
    assert page.url.endswith("/chat.html")
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    # Of what is too long to be shown, the whole can be opened.
    page.locator("[data-card=a3]").get_by_role("button", name="open all").click()
    assert last_said(chat, "openWhole") == {"type": "openWhole", "cardId": "a3"}
    for link in ("run", "order", "code", "blob", "sly", "slash", "encoded"):
        page.locator("[data-card=a1]").get_by_text(link, exact=False).first.click()
    assert len(chat.said("openLink")) == 1
    assert len(chat.said("openFile")) == 1


def test_a_card_that_cannot_be_drawn_leaves_the_others(open_webview, quiet):
    broken = {"id": "c1", "kind": "tool", "title": "half a card", "tone": "ok"}
    everything = quiet | {"cards": [prompt(1, "before"), broken, prompt(2, "after")]}
    chat = open_webview("chat")
    chat.wait_for(lambda: chat.said("ready"), "the page's first word")
    tell(chat, everything)
    chat.wait_for(lambda: "A tool that cannot be shown" in chat.text(), "a word in its place")
    assert "before" in chat.text()
    assert "after" in chat.text()
    chat.page.evaluate(
        "() => window.dispatchEvent(new ErrorEvent('error', { message: 'a fault' }))"
    )
    chat.wait_for(lambda: "a fault" in chat.text(), "a fault is told")
    chat.faults.clear()  # the page says to its console why the card was not drawn


PHASES: list[tuple[dict[str, Any], str, list[tuple[str, str | None]]]] = [
    (
        {"state": "none"},
        "No session is open here",
        [("New session", "callboard.newSession"), ("Open a session", "callboard.searchSessions")],
    ),
    ({"state": "untrusted"}, "Restricted Mode", [("Manage trust", "callboard.manageTrust")]),
    (
        {"state": "failed", "message": "callboard is not there", "lines": ["its last words"]},
        "its last words",
        [
            ("Restart", "callboard.restartServer"),
            ("Settings", "callboard.serverSettings"),
            ("Show log", "callboard.showLog"),
            ("Doctor", "callboard.doctor"),
        ],
    ),
    (
        {
            "state": "reconnecting",
            "message": "It ended with code 2.",
            "starting": True,
            "lines": ["no such option"],
        },
        "no such option",
        [
            ("Restart", "callboard.restartServer"),
            ("Settings", "callboard.serverSettings"),
            ("Show log", "callboard.showLog"),
            ("Doctor", "callboard.doctor"),
        ],
    ),
    (
        {"state": "reconnecting", "message": "It has ended.", "starting": False, "lines": []},
        "Reconnecting… It has ended.",
        [("Restart", "callboard.restartServer")],
    ),
    ({"state": "silent", "message": "no answer"}, "no answer", [("Show log", "callboard.showLog")]),
    (
        {"state": "lost", "message": "not in this store"},
        "not in this store",
        [("Try again", None), ("Open a session", "callboard.searchSessions")],
    ),
]
"""How the server or the session stands, a part of what is said of it, and the ways out; None asks again."""


@pytest.mark.parametrize("cards", [False, True])
def test_there_is_always_something_and_a_way_out(open_webview, quiet, cards):
    chat = open_webview("chat", size=(340, 640))
    assert chat.text().strip() != ""
    chat.wait_for(lambda: "Loading" in chat.text(), "it says that it loads")
    some = {"cards": [prompt(1, "said before")] if cards else []}
    tell(chat, quiet | some)
    for phase, words, ways in PHASES:
        if cards and phase["state"] in ("none", "untrusted"):
            continue  # there is no session then
        chat.post({"type": "phase", "phase": phase})
        chat.wait_for(lambda words=words: words in chat.text(), words)
        assert ("said before" in chat.text()) == cards
        for label, command in ways:
            chat.page.get_by_role("button", name=label).click()
            if command is None:
                assert last_said(chat, "retry") == {"type": "retry"}
            else:
                assert last_said(chat, "command") == {"type": "command", "command": command}
        if not cards:
            assert chat.axe() == []


def test_cards_offer_what_can_be_done_with_them(open_webview, everything):
    chat = shown(open_webview, everything, size=(700, 3000))
    page = chat.page
    page.locator("[data-card=c2] .changes button").first.click()
    assert last_said(chat, "openDiff") == {
        "type": "openDiff",
        "cardId": "c2",
        "path": "src/parser.py",
    }
    page.locator("[data-card=c3] button.row").click()
    page.locator("[data-card=c3]").get_by_role("button", name="40 lines above").click()
    assert last_said(chat, "openWhole") == {"type": "openWhole", "cardId": "c3"}
    page.get_by_role("button", name="Try again").click()
    assert last_said(chat, "retry") == {"type": "retry"}
    error = {"kind": "error", "text": "no key", "about": "authRequired", "retryable": False}
    chat.post({"type": "news", "cards": [error | {"id": "e2", "setup": True}]})
    page.get_by_role("button", name="Set up a model").click()
    assert last_said(chat, "command")["command"] == "callboard.doctor"
    page.get_by_role("button", name="Choose a model").click()
    assert last_said(chat, "command")["command"] == "callboard.selectModel"
    page.get_by_role("button", name="Copy the code").click()
    assert last_said(chat, "copy")["text"].startswith("def parse_list")
    page.locator("[data-card=p1]").get_by_role("button", name="More about this message").click()
    page.get_by_role("menuitem", name="Go back to before this").click()
    assert last_said(chat, "rewind") == {"type": "rewind", "turnId": "t1"}
    page.get_by_role("button", name="Mode: work").click()
    assert last_said(chat, "command")["command"] == "callboard.selectMode"


def test_all_of_it_is_reached_by_keys_alone(open_webview, everything):
    chat = shown(open_webview, everything, size=(500, 900))
    page = chat.page
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the message field"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "composer"
    page.keyboard.type("by keys")
    page.keyboard.press("Enter")
    assert last_said(chat, "send")["text"] == "by keys"
    names: list[str] = []
    for _ in range(80):
        page.keyboard.press("Shift+Tab")
        names.append(
            page.evaluate(
                "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
            )
        )
    reached = " | ".join(names)
    for wanted in (
        "Plan",
        "Edit",
        "Allow once",
        "What is asked",
        "Try again",
        "Show earlier messages",
    ):
        assert wanted in reached, wanted
    assert chat.said("answer") == []
