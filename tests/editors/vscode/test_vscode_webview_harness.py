"""The harness of the webviews' pages itself, so that a fault of it is not taken for one of a page."""

import pytest


@pytest.mark.parametrize("theme", ["dark", "light", "contrast"])
def test_a_page_has_the_look_and_the_policy_of_vs_code(open_webview, theme):
    chat = open_webview("chat", theme=theme)
    page = chat.page
    assert page.evaluate("() => document.body.dataset.vscodeThemeKind").startswith("vscode-")
    drawn = page.evaluate("() => getComputedStyle(document.body).color")
    meant = page.evaluate(
        "() => { const probe = document.createElement('p'); document.body.append(probe);"
        " probe.style.color = 'var(--vscode-editor-foreground)';"
        " const is = getComputedStyle(probe).color; probe.remove(); return is; }"
    )
    assert drawn == meant
    assert chat.wrongs() == []


@pytest.mark.parametrize(
    ("deed", "told"),
    [
        ("document.body.append(Object.assign(new Image(), {src: 'https://elsewhere.test/a.png'}))", "img-src"),
        ("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(1)>')", "script-src-attr"),
        ("document.body.insertAdjacentHTML('beforeend', '<p style=\"color:red\">')", "style-src-attr"),
        ("setTimeout(() => { throw new Error('broken'); })", "uncaught: broken"),
        ("document.body.insertAdjacentHTML('beforeend', '<i class=\"codicon codicon-none\"></i>')", "codicon-none"),
        ("console.error('complained')", "complained"),
    ],
)  # fmt: skip
def test_what_no_page_may_do_is_told(open_webview, deed, told):
    chat = open_webview("chat")
    chat.page.evaluate(f"() => {{ {deed} }}")
    chat.wait_for(lambda: any(told in wrong for wrong in chat.wrongs()), told)
    with pytest.raises(AssertionError, match=told):
        chat.close()
