"""The harness itself, so that a fault of it is not taken for one of the extension."""


def test_a_window_opens_with_the_extension(open_code):
    code = open_code()
    window = code.open()
    window.wait_for(code.extension_hosts, "an extension host")
    window.wait_for(lambda: "callboard" in code.logs(), "the extension in the logs")
    window.command("View: Toggle Primary Side Bar Visibility")
    window.page.locator(".sidebar").wait_for(state="hidden")
    window.screenshot("workbench")
    code.close()
    assert code.processes() == []
