"""The page of a chat in the hands of its tests: what it is told, and how it is known to have taken that in."""

from collections.abc import Callable
from typing import Any

from webview_harness import Webview

Opened = Callable[..., Webview]


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
