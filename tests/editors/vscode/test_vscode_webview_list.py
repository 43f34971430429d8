"""The list of a chat's cards: streams, many cards, older ones, and pages that go and come back."""

import json

from webview_chat import answer, drawn, last_said, live, prompt, shown, tell


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
