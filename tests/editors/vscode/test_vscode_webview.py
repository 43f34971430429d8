"""The page of a chat, in a plain browser: what it shows of what it is told, and what it says a person has done.

A page that breaks its content policy, asks for anything from elsewhere or throws fails its test at the end.
"""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from vscode_build import run_node
from webview_harness import Webview

Opened = Callable[..., Webview]


@pytest.fixture(scope="module")
def gallery() -> dict[str, Any]:
    """One of everything that a chat can show."""
    return json.loads(run_node("test/webview/gallery.mjs"))


@pytest.fixture
def everything(gallery: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(gallery)


@pytest.fixture
def quiet(everything: dict[str, Any]) -> dict[str, Any]:
    """A session in which nothing runs, nothing waits and nothing was said."""
    del everything["plan"], everything["head"]["turn"]
    head = everything["head"] | {"agentsRunning": 0, "inGroup": False}
    lists: dict[str, Any] = {"cards": [], "queue": [], "approvals": [], "context": []}
    return everything | lists | {"head": head, "elsewhere": 0, "older": False}


def shown(open_webview: Opened, everything: dict[str, Any], **settings: Any) -> Webview:
    chat = open_webview("chat", **settings)
    chat.wait_for(lambda: chat.said("ready"), "the page's first word")
    tell(chat, everything)
    return chat


def tell(chat: Webview, everything: dict[str, Any]) -> None:
    """Tells everything, and waits until the page has drawn it."""
    chat.post({"type": "all", "all": everything})
    drawn(chat)


def drawn(chat: Webview) -> None:
    """Waits until what was posted is drawn."""
    chat.page.evaluate(
        """() => new Promise((done) => {
          const channel = (event) => {
            if (event.data?.mark) {
              window.removeEventListener("message", channel);
              requestAnimationFrame(() => requestAnimationFrame(() => done()));
            }
          };
          window.addEventListener("message", channel);
          window.postMessage({ mark: true }, "*");
        })"""
    )


def prompt(number: int, text: str) -> dict[str, Any]:
    return {
        "id": f"p{number}",
        "kind": "prompt",
        "text": text,
        "steer": False,
        "attachments": [],
        "cut": False,
    }


def answer(card: str, text: str, *, streaming: bool = False) -> dict[str, Any]:
    return {
        "id": card,
        "kind": "answer",
        "text": text,
        "streaming": streaming,
        "partial": False,
        "cut": False,
    }


def last_said(chat: Webview, kind: str) -> dict[str, Any]:
    return chat.wait_for(lambda: chat.said(kind), f"the page says {kind}")[-1]


def live(chat: Webview, urgency: str) -> str:
    """What was read out last."""
    return chat.page.locator(f"[data-live={urgency}]").inner_text()


def approval(everything: dict[str, Any]) -> dict[str, Any]:
    """The one of the gallery that asks about a command."""
    return next(card for card in everything["cards"] if card["id"] == "c6")["approval"]


def stop_clock(chat: Webview) -> None:
    """No time passes for the page: what must not be done in the next moment is done in it."""
    chat.page.evaluate("() => { const now = performance.now(); performance.now = () => now; }")


def start_clock(chat: Webview) -> None:
    chat.page.evaluate("() => { delete performance.now; }")
    chat.post({"type": "phase", "phase": {"state": "live"}})


def settle(chat: Webview, held: str) -> None:
    """Waits until an approval is answered by what a person does."""
    chat.wait_for(
        lambda: chat.page.locator(f"[data-approval={held}] [aria-disabled=true]").count() == 0,
        "the approval can be answered",
    )


# --- what is seen ---


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


PHASES: list[tuple[dict[str, Any], str, list[tuple[str, str]]]] = [
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
        [("Open a session", "callboard.searchSessions")],
    ),
]


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
            assert last_said(chat, "command") == {"type": "command", "command": command}
        if not cards:
            assert chat.axe() == []


# --- the list ---


def test_a_stream_is_appended_and_leaves_the_page_responsive(open_webview, quiet):
    head = quiet["head"] | {"turn": {"state": "running"}}
    everything = quiet | {"head": head, "cards": [answer("a1", "", streaming=True)]}
    chat = shown(open_webview, everything, size=(500, 700))
    page = chat.page
    page.evaluate(
        """() => {
          window.longest = 0;
          new PerformanceObserver((list) => {
            for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
          }).observe({ type: "longtask" });
          const words = [];
          for (let n = 0; n < 3000; n += 1) {
            words.push(n % 100 === 99 ? "end.\\n\\n" : n % 250 === 0 ? "\\n\\n```py\\nx = 1\\n```\\n\\n" : `word${n} `);
          }
          window.whole = words.join("");
          let at = 0;
          const timer = setInterval(() => {
            for (let n = 0; n < 10 && at < words.length; n += 1, at += 1) {
              window.postMessage({ type: "news", append: [{ id: "a1", text: words[at] }] }, "*");
            }
            if (at === words.length) {
              clearInterval(timer);
              window.streamed = true;
            }
          }, 10);
        }"""
    )
    chat.wait_for(lambda: page.locator("[data-card=a1] p").count() > 2, "a finished paragraph")
    page.evaluate("() => { window.first = document.querySelector('[data-card=a1] p'); }")
    page.get_by_role("textbox").press_sequentially("typed meanwhile")
    chat.wait_for(lambda: page.evaluate("() => window.streamed"), "the end of the stream")
    drawn(chat)
    assert page.get_by_role("textbox").input_value() == "typed meanwhile"
    # What was finished was not drawn again, and nothing is lost.
    assert page.evaluate("() => window.first === document.querySelector('[data-card=a1] p')")
    whole = page.evaluate("() => window.whole")
    text = page.locator("[data-card=a1]").text_content() or ""
    assert "word2998" in text
    assert page.locator("[data-card=a1] pre").count() == whole.count("```py")
    # While it comes it is not read out, and when it is finished it is.
    assert live(chat, "polite") == ""
    chat.post({"type": "news", "cards": [answer("a1", "All is **done**.")]})
    chat.wait_for(lambda: live(chat, "polite").strip() == "All is **done**.", "it is read out")
    assert page.evaluate("() => window.longest") < 1000  # the issue says "responsive"


def test_a_stream_looks_like_the_finished_message(open_webview, quiet, everything):
    text = next(card["text"] for card in everything["cards"] if card["id"] == "a1")
    long_code = (
        "\n```py\n"
        + "\n".join(f"line{n} = {n}" for n in range(900))
        + "\n```\n\nAfter it, [a name][1].\n"
    )
    text += "\n" + long_code + "\n[1]: https://example.com/named\n"
    cards = [answer("a1", "", streaming=True), answer("a2", text)]
    chat = shown(open_webview, quiet | {"cards": cards}, size=(700, 900))
    for at in range(0, len(text), 37):
        chat.post({"type": "news", "append": [{"id": "a1", "text": text[at : at + 37]}]})
        if at % 370 == 0:
            drawn(chat)
    drawn(chat)
    chat.post({"type": "news", "cards": [answer("a1", text)]})
    drawn(chat)
    html = """(id) => {
      const prose = document.querySelector(`[data-card=${id}] .prose`).cloneNode(true);
      prose.querySelectorAll("pre").forEach((pre) => pre.replaceWith(pre.textContent));
      return prose.innerHTML;
    }"""
    assert chat.page.evaluate(html, "a1") == chat.page.evaluate(html, "a2")


def test_many_cards_are_drawn_in_part(open_webview, quiet):
    cards = [prompt(n, f"message {n}") for n in range(5000)]
    chat = shown(open_webview, quiet | {"cards": cards, "older": True}, size=(500, 600))
    page = chat.page
    assert page.locator("[data-card]").count() == 200
    assert page.locator("[data-card=p4999]").is_visible()
    box = page.get_by_role("log")
    place = "(id) => Math.round(document.querySelector(`[data-card=${id}]`)?.getBoundingClientRect().top ?? -1)"
    # Up to the first one that is drawn: earlier ones come above it, and it stays where it is.
    page.locator("[data-card=p4800]").scroll_into_view_if_needed()
    chat.wait_for(lambda: page.locator("[data-card=p4790]").count() == 1, "earlier cards")
    assert abs(page.evaluate(place, "p4800")) < 600
    # What comes at the end does not move the one who is not there.
    drawn(chat)
    before = page.evaluate(place, "p4800")
    chat.post({"type": "news", "cards": [prompt(5000, "the newest")]})
    chat.wait_for(
        lambda: page.get_by_role("button", name="New messages").count() == 1, "it is told"
    )
    assert page.evaluate(place, "p4800") == before
    page.get_by_role("button", name="New messages").click()
    chat.wait_for(lambda: page.locator("[data-card]").count() == 200, "only the last are drawn")
    chat.wait_for(
        lambda: (
            page.evaluate(
                "(e) => e.scrollHeight - e.scrollTop - e.clientHeight", box.element_handle()
            )
            < 30
        ),
        "the end is in view",
    )
    # One who is there stays there.
    chat.post({"type": "news", "cards": [answer("a1", "line\n\n" * 50)]})
    chat.wait_for(
        lambda: (
            page.evaluate(
                "(e) => e.scrollHeight - e.scrollTop - e.clientHeight", box.element_handle()
            )
            < 30
            and page.locator("[data-card=a1]").count() == 1
        ),
        "the end is followed",
    )


def test_older_cards_come_in_front_of_what_is_seen(open_webview, quiet):
    cards = [prompt(n, f"message {n}\n\n\n") for n in range(100, 130)]
    chat = shown(open_webview, quiet | {"cards": cards, "older": True}, size=(500, 500))
    page = chat.page
    page.get_by_role("button", name="Show earlier").click()
    last_said(chat, "older")
    page.locator("[data-card=p101]").scroll_into_view_if_needed()
    drawn(chat)
    place = "(id) => Math.round(document.querySelector(`[data-card=${id}]`).getBoundingClientRect().top)"
    before = page.evaluate(place, "p101")
    older = [prompt(n, f"message {n}") for n in range(50, 100)]
    chat.post({"type": "news", "before": older, "older": False})
    drawn(chat)
    assert page.locator("[data-card=p50]").count() == 1
    assert abs(page.evaluate(place, "p101") - before) <= 2
    assert page.get_by_role("button", name="Show earlier").count() == 0


def test_what_was_found_is_brought_into_view_and_marked(open_webview, quiet):
    cards = [prompt(n, f"message {n}\n\n\n") for n in range(1000, 1500)]
    chat = shown(open_webview, quiet | {"cards": cards, "older": True}, size=(500, 500))
    page = chat.page
    marked = page.locator("[aria-current=location]")

    def seen(card: str) -> bool:
        return (
            marked.count() == 1
            and marked.get_attribute("data-card") == card
            and 0 <= (marked.bounding_box() or {"y": -1})["y"] < 300
        )

    chat.post({"type": "found", "cardId": "p1050"})
    chat.wait_for(lambda: seen("p1050"), "one that was not drawn")
    older = [prompt(n, f"message {n}") for n in range(800, 1000)]
    chat.post({"type": "news", "before": older, "older": False})
    chat.post({"type": "found", "cardId": "p820"})
    chat.wait_for(lambda: seen("p820"), "one that came with it")
    chat.post({"type": "found", "cardId": "p1400"})
    chat.wait_for(lambda: seen("p1400"), "one that is drawn")
    chat.post({"type": "news", "cards": [prompt(1500, "the newest")]})
    drawn(chat)
    assert seen("p1400")


def test_a_page_that_was_hidden_comes_back_as_it_was(open_webview, quiet):
    cards = [prompt(n, f"message {n}\n\n\n") for n in range(60)]
    thought = {**answer("th", "what it thought"), "kind": "thought"}
    everything = quiet | {"cards": [thought, *cards]}
    chat = shown(open_webview, everything, size=(500, 500))
    page = chat.page
    page.get_by_role("textbox").fill("half a thought")
    page.locator("[data-card=p30]").scroll_into_view_if_needed()
    page.get_by_role("log").hover()
    page.mouse.wheel(0, -200)
    chat.wait_for(lambda: chat.kept() and chat.kept().get("place"), "the place is kept")
    chat.wait_for(lambda: "half a thought" in json.dumps(chat.kept()), "the draft is kept")
    assert chat.kept()["sessionId"] == "s1"
    place = "(id) => Math.round(document.querySelector(`[data-card=${id}]`).getBoundingClientRect().top)"
    kept = chat.kept()["place"]["card"]
    before = page.evaluate(place, kept)
    chat.load()
    chat.wait_for(lambda: chat.said("ready"), "it is up again")
    tell(chat, everything)
    assert page.get_by_role("textbox").input_value() == "half a thought"
    chat.wait_for(lambda: abs(page.evaluate(place, kept) - before) <= 2, "the place of before")


def test_what_was_on_its_way_when_the_page_went_is_said_or_comes_back(open_webview, quiet):
    chat = shown(open_webview, quiet)
    field = chat.page.get_by_role("textbox")
    for text in ("arrived", "lost"):
        field.fill(text)
        field.press("Enter")
    chat.load()
    chat.wait_for(lambda: chat.said("ready"), "it is up again")
    tell(chat, quiet | {"cards": [prompt(1, "arrived")]})
    chat.wait_for(lambda: field.input_value() == "lost", "what is nowhere else")
    assert "may not have been sent" in chat.text()
    assert "Sending" not in chat.text()
    assert chat.said("send") == []


def test_an_idle_page_has_no_timer(open_webview, quiet):
    chat = open_webview("chat")
    chat.context.add_init_script(
        """window.ticking = new Set();
        const { setInterval: set, clearInterval: clear } = window;
        window.setInterval = (...all) => { const id = set(...all); window.ticking.add(id); return id; };
        window.clearInterval = (id) => { window.ticking.delete(id); clear(id); };"""
    )
    chat.load()
    chat.wait_for(lambda: chat.said("ready"), "it is up")
    started = chat.page.evaluate("() => new Date().toISOString()")
    running = quiet["head"] | {"turn": {"state": "running", "startedAt": started}}
    tell(chat, quiet | {"head": running})
    chat.wait_for(lambda: chat.page.evaluate("() => window.ticking.size") == 1, "one clock")
    words = chat.page.locator(".standing").inner_text()
    chat.wait_for(lambda: chat.page.locator(".standing").inner_text() != words, "it goes on")
    chat.post({"type": "head", "head": quiet["head"]})
    chat.wait_for(lambda: chat.page.evaluate("() => window.ticking.size") == 0, "no clock any more")


# --- approvals ---


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


# --- what the person says ---


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
