"""What somebody does who lives in VS Code: a real one, the packed extension, the real server, a scripted model.

Each test keeps pictures of what it saw; two of them are the README's (``docs/vscode_picture.py``).
"""

import json
import re
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, Dialog, expect
from vscode_build import installed
from vscode_harness import SERVER, THEMES, CodeServer, plain
from vscode_place import ChatWindow, Place

from harness.disks import LittleDisk, little_disk
from harness.exports import long_session
from harness.process import ServerProcess

Made = Callable[..., Place]


@pytest.fixture(scope="module")
def code(
    browser: Browser, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Generator[CodeServer]:
    """The VS Code of these tests; each has a place of its own in it."""
    code = CodeServer(browser, installed(shared), tmp_path_factory.mktemp("code"))
    yield code
    code.close()


@pytest.fixture
def place(code: CodeServer, tmp_path: Path) -> Generator[Made]:
    """Makes places (see `Place` for what it takes)."""
    with ExitStack() as made:
        count = 0

        def make(scenario: str, **settings: Any) -> Place:
            nonlocal count
            count += 1
            return made.enter_context(Place(code, tmp_path / f"place{count}", scenario, **settings))

        yield make


MEND = r"""
rules:
  - when: {last_user: {regex: "^mend"}, step: 0}
    answer:
      - think: The test says what is wrong. I look at the code first.
      - say: "I look at **app.py** first."
      - call: {tool: read_file, arguments: {path: "app.py"}}
  - when: {last_tool: {name: read_file, contains: ""}}
    answer:
      - say: "It takes away where it should add:\n\n```python\nreturn a - b\n```\n\nOne line is to change."
        chars_per_second: 600
      - call: {tool: write_file, arguments: {path: "app.py", content: "def add(a, b):\n    return a + b\n"}}
  - when: {last_tool: {name: write_file, status: error}}
    answer: [{say: "Then I leave it: {{last_tool}}"}]
  - when: {last_tool: {name: write_file, status: ok}}
    answer:
      - call: {tool: run_command, arguments: {command: "python3 -c 'import app; print(app.add(1, 2))'"}}
  - when: {last_tool: {contains: ""}}
    answer: [{say: "Done: `add` adds now."}, {usage: {input_tokens: 900, output_tokens: 12}}]
default:
  - say: "You said: {{last_user}}"
"""
WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"


def test_a_prompt_is_answered_asked_about_allowed_and_its_change_accepted(place: Made):
    here = place(MEND, theme="light")
    app = here.write("app.py", WRONG)
    me = here.window(1440, 900).begin()
    me.say("mend the failing test, please")
    me.shows("It takes away", "One line is to change.")
    card = me.approval()
    assert "app.py" in card.inner_text()
    card.get_by_role("button", name="Show all as a diff").click()
    me.page.locator(".monaco-diff-editor .modified-in-monaco-diff-editor").wait_for()
    me.wait_for(lambda: "Needs you" in " ".join(me.window.rows("Sessions")), "it in the list")
    assert app.read_text() == WRONG
    me.screenshot("e2e-approval-light-wide")
    me.choose("Allow once")
    me.wait_for(lambda: "python3 -c" in me.approval().inner_text(), "the second approval")
    assert app.read_text() == RIGHT
    me.choose("Allow once")
    me.shows("Done: add adds now.")
    me.calm()
    me.command("Callboard: Show the Changes of the Session")
    me.window.open_row("Changes", "app.py")
    me.page.locator(".monaco-diff-editor .modified-in-monaco-diff-editor").wait_for()
    me.screenshot("e2e-diff-light-wide")
    me.command("Callboard: Accept the Change of This File")
    me.wait_for(lambda: "accepted" in " ".join(me.window.rows("Changes")), "the file as accepted")
    me.screenshot("e2e-accepted-light-wide")
    assert app.read_text() == RIGHT
    # The file at hand goes along until it is closed.
    me.page.keyboard.press("Control+P")
    me.page.keyboard.type("app.py")
    me.window.pick("app.py")
    me.wait_for(lambda: me.find(".chip").all_inner_texts() == ["app.py"], "the file at hand")
    me.command("View: Close All Editors")
    me.wait_for(lambda: me.find(".chip").count() == 0, "no file at hand")
    # A step of the walkthrough that was done before is known as done.
    me.command("Callboard: Get Started")
    steps = me.page.locator(".getting-started-step")
    done = steps.first.locator(".codicon-getting-started-step-checked")
    me.wait_for(lambda: done.count() == 1, "the first step as done")


TALK = r"""
rules:
  - when: {last_user: {regex: "^run (.+)$"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "{{match.1}}"}}}]
  - when: {last_user: {regex: "^hang|You are the agent 'sleeper"}, step: 0}
    answer: [{say: "I begin, and then"}, {hang: true}]
  - when: {last_user: {regex: "You are the agent 'asker'"}, step: 0}
    answer: [{call: {tool: message, arguments: {to: parent, text: "Which of the two?"}}}]
  - when: {last_user: {regex: "You are the agent 'typist'"}, step: 0}
    answer: [{call: {tool: write_file, arguments: {path: "typed.txt", content: "typed\n"}}}]
  - when: {last_user: {regex: "You are the agent"}}
    answer: [{say: "It was little."}, {usage: {input_tokens: 1200, output_tokens: 34}}]
  - when: {last_user: {contains: "tell me more"}}
    answer:
      - say: "So it begins. "
      - say: "And on it goes, word after word. "
        repeat: 60
        chars_per_second: 240
      - say: "So it ends."
  - when: {last_tool: {status: error}}
    answer: [{say: "Then I leave it: {{last_tool}}"}]
  - when: {last_tool: {contains: ""}}
    answer: [{say: "Done."}]
default:
  - say: "You said: {{last_user}}"
"""


def test_without_a_server_it_says_what_to_do_and_works_once_that_is_done(place: Made):
    here = place(TALK, theme="light", settings={"callboard.server.path": "/nowhere/callboard"})
    me = here.window(700, 800)
    me.command("View: Show Callboard")
    me.shows("No server:", "/nowhere/callboard")
    sessions = me.window.pane("Sessions")
    me.wait_for(lambda: "The server was not found" in sessions.inner_text(), "words in the list")
    assert "Set the Path of the Server" in sessions.inner_text()
    assert any("not found" in text for text in me.window.status_bar())
    assert here.servers() == []
    me.composer().fill("hello")
    me.composer().press("Enter")
    assert me.composer().input_value() == "hello"
    me.screenshot("e2e-no-server-light-narrow")
    here.set({"callboard.server.path": SERVER})
    me.gone("No server:")
    me.wait_for(lambda: len(here.servers()) == 1, "a server")
    me.wait_for(lambda: me.find(".send:not([disabled])").count() == 1, "that it can be sent")
    me.composer().press("Enter")
    me.shows("You said: hello")
    me.calm()
    assert any(text == "Callboard" for text in me.window.status_bar())


def test_a_question_outlives_a_hidden_view_and_a_reload_and_one_of_two_windows_answers_it(
    place: Made,
):
    here = place(TALK)
    one = here.window(1100, 760).begin()
    one.say("run echo ran >> ran.txt")
    asked = one.approval().get_attribute("data-approval")
    one.command("View: Show Explorer")
    one.wait_for(lambda: one.window.frame('[role="log"]') is None, "the end of the hidden page")
    one.wait_for(
        lambda: any("1 approval" in text for text in one.window.status_bar()),
        "the approval in the status bar",
    )
    one.screenshot("e2e-hidden-dark")
    one.command("View: Show Callboard")
    assert one.approval().get_attribute("data-approval") == asked
    one.window.reload()
    assert one.approval().get_attribute("data-approval") == asked
    one.screenshot("e2e-reloaded-dark")
    one.wait_for(lambda: len(here.servers()) == 1, "the end of the server before")
    (first,) = here.servers()
    two = here.window(1100, 760)
    two.command("View: Show Callboard")
    two.wait_for(lambda: len(here.servers()) == 2, "a server of its own")
    two.window.open_row("Sessions", "run echo")
    two.approval()
    two.screenshot("e2e-two-windows-dark")
    one.choose("Deny")
    one.shows("Then I leave it")
    two.shows("Then I leave it")
    two.wait_for(lambda: two.find("[data-approval]").count() == 0, "the end of the question")
    # Now the second window cannot hear of the answer before it gives one.
    one.say("run echo again >> ran.txt")
    two.approval()
    two.wait_for(lambda: two.find("[data-approval] [aria-disabled=true]").count() == 0, "a moment")
    (second,) = (server for server in here.servers() if server != first)
    second.suspend()
    one.choose("Allow once")
    one.shows("Done.")
    two.choose("Deny")
    two.shows("The answer is on its way")
    second.resume()
    two.wait_for(lambda: two.find("[data-approval]").count() == 0, "the end of the question")
    two.wait_for(
        lambda: any("was allowed by" in text for text in two.window.notifications()),
        "words to the late answer",
    )
    two.wait_for(lambda: "Idle" in two.window.rows("Sessions"), "the session at rest in the list")
    two.screenshot("e2e-late-answer-dark")
    assert (here.project / "ran.txt").read_text() == "again\n"
    other = here.other()
    (session,) = other.call("session/list")["data"]
    ends = [
        event["data"]["resolution"]["optionId"]
        for event in other.events(session["sessionId"])
        if event["type"] == "approval_decision"
    ]
    assert ends == ["reject_once", "allow_once"]


def test_neither_a_killed_server_nor_a_full_disk_loses_or_doubles_anything(place: Made):
    here = place(TALK, theme="light")
    with little_disk(here.store.parent, kib=8192) as disk:
        me = here.window(1000, 760).begin()
        a_killed_server_is_followed_by_another(here, me)
        a_full_disk_is_told_and_keeps_nothing_for_good(here, me, disk)
        nothing_is_lost_or_doubled(here, me)
        here.close()


def a_killed_server_is_followed_by_another(here: Place, me: ChatWindow) -> None:
    me.say("hello")
    me.shows("You said: hello")
    me.say("tell me more")
    me.shows("And on it goes, word after word. And on it goes")
    (server,) = here.servers()
    server.kill()
    me.shows(re.compile("interrupted|cut off"))
    me.wait_for(lambda: [each for each in here.servers() if each != server], "another server")
    me.calm()
    me.wait_for(lambda: "Idle" in me.window.rows("Sessions"), "the session at rest in the list")
    me.screenshot("e2e-after-a-crash-light")
    me.say("hello again")
    me.shows("You said: hello again")
    me.calm()


def a_full_disk_is_told_and_keeps_nothing_for_good(
    here: Place, me: ChatWindow, disk: LittleDisk
) -> None:
    (server,) = here.servers()
    told = re.compile("is full; free some space and try again|written just now")
    me.say("hello for the third time")
    me.shows("You said: hello for the third time")
    me.calm()
    # What cannot be stored comes back, to be said again.
    disk.fill(server)
    me.say("run echo ran >> ran.txt")
    me.wait_for(lambda: told.search(me.find(".composer .warn").inner_text()), "why it was not sent")
    assert me.composer().input_value() == "run echo ran >> ran.txt"
    me.screenshot("e2e-full-disk-prompt-light")
    disk.free()
    me.composer().press("Enter")
    # An answer that cannot be stored is none, and is told on the card, which stays.
    me.approval()
    disk.fill(server)
    me.choose("Allow once")
    me.wait_for(lambda: told.search(me.approval().inner_text()), "why it did not count")
    expect(me.find("[data-approval] .warn")).to_be_in_viewport(timeout=30_000)
    me.screenshot("e2e-full-disk-answer-light")
    assert not (here.project / "ran.txt").exists()
    disk.free()
    me.choose("Allow once")
    me.shows("Done.", "Allowed by you")
    me.calm()
    assert (here.project / "ran.txt").read_text() == "ran\n"
    # A turn that is at work comes to its end when there is room for it.
    me.say("tell me more of it")
    me.wait_for(lambda: me.text().count("So it begins.") == 2, "the turn")
    disk.fill(server)
    me.shows("So it ends.")
    assert "running" in me.find(".head .standing").inner_text()
    disk.free()
    me.calm()


def nothing_is_lost_or_doubled(here: Place, me: ChatWindow) -> None:
    other = here.other()
    (session,) = other.call("session/list")["data"]
    said = [
        plain("".join(part["text"] for part in event["data"]["content"]))
        for event in other.events(session["sessionId"])
        if event["type"] == "message"
    ]
    # What is out of sight is not drawn, and has no inner text.
    shown = me.find(".prompt .plain, .answer .prose").all_text_contents()
    assert [plain(text) for text in shown] == [text for text in said if text]
    ids = me.find("[data-card]").evaluate_all("(all) => all.map((each) => each.dataset.card)")
    assert len(ids) == len(set(ids))
    assert len(here.servers()) == 1


def test_what_is_said_meanwhile_waits_can_be_changed_and_goes_along_with_a_denial(place: Made):
    here = place(TALK)
    me = here.window(1280, 900).begin()
    me.say("run sleep 600")
    me.approval()
    me.say("first thing")
    me.say("second thing")
    me.shows("Waits for the end of the turn", "second thing")
    queued = lambda text: me.find(".queued").filter(has_text=text)  # noqa: E731
    me.wait_for(lambda: me.find(".queued .actions").count() == 2, "both in the queue")
    queued("first thing").get_by_role("button", name="Edit").click()
    field = me.find(".queue textarea")
    field.fill("first thing, changed")
    field.press("Enter")
    me.shows("first thing, changed")
    me.screenshot("e2e-queue-dark")
    queued("second thing").get_by_role("button", name="Remove").click()
    me.gone("second thing")
    queued("first thing, changed").get_by_role("button", name="Send now").click()
    me.shows("at the next step")
    me.say("and mind the name", key="Control+Enter")
    me.wait_for(lambda: me.text().count("at the next step") == 2, "both as steers")
    card = me.approval()
    card.get_by_role("button", name="Deny, say why").click()
    note = card.get_by_role("textbox")
    note.fill("Not so long.")
    me.screenshot("e2e-deny-dark")
    note.press("Enter")
    me.shows("You said: first thing, changed and mind the name")
    me.calm()
    assert me.find(".queue").count() == 0
    other = here.other()
    (session,) = other.call("session/list")["data"]
    (result,) = (
        event["data"]
        for event in other.events(session["sessionId"])
        if event["type"] == "tool_result"
    )
    assert "Not so long." in json.dumps(result)


def statuses(other: ServerProcess, root: str) -> dict[str, str]:
    return {
        agent["name"]: agent["status"] for agent in other.call("agent/list", rootId=root)["data"]
    }


def test_stopping_says_what_it_stops_leaves_the_rest_alone_and_offers_force(place: Made):
    here = place(TALK, theme="light")
    other = here.other()
    me = here.window(1100, 800).begin()
    me.say("hang")
    me.shows("I begin, and")
    (session,) = other.call("session/list")["data"]
    root = session["sessionId"]
    for name in ("sleeper one", "sleeper two"):
        other.call("agent/spawn", parentId=root, name=name, message="Sleep.")
    stop = lambda: me.find("button[aria-label='Stop…']")  # noqa: E731
    item = lambda text: me.find("[role=menuitem]").filter(has_text=text)  # noqa: E731
    stop().click()
    me.wait_for(lambda: item("Stop it and 2 agents below").count() == 1, "both scopes")
    assert "2 agents below it go on" in item("Stop this agent").inner_text()
    me.screenshot("e2e-stop-menu-light")
    item("Stop this agent").click()
    me.shows("stopped", "(cut off here)")
    me.calm()
    assert set(statuses(other, root).values()) == {"running"}
    stop().click()
    assert item("Stop this agent").count() == 0
    item("Stop it and 2 agents below").click()
    me.wait_for(lambda: set(statuses(other, root).values()) == {"interrupted"}, "all stopped")
    # From a member of a group: all of it, with the lead.
    other.call("group/taskCreate", rootId=root, title="Sleep well")
    agent = other.call("agent/spawn", parentId=root, name="sleeper three", message="Sleep.")
    me.say("hang on, hang")
    me.wait_for(lambda: me.find(".head .standing").inner_text().startswith("running"), "a turn")
    me.unfold("Agents")
    me.window.open_row("Agents", "sleeper three")
    me.wait_for(lambda: me.find(".head .parent").count() == 1, "the chat of the agent")
    stop().click()
    item("Stop the whole group").click()
    assert agent["agent"]["name"] == "sleeper three"
    me.wait_for(lambda: statuses(other, root)["sleeper three"] == "interrupted", "it stopped")
    other.wait(root)
    # What does not stop although it was asked to.
    stubborn = other.create(here.project, title="A stubborn one")
    other.prompt(stubborn, "hang")
    me.window.open_row("Sessions", "A stubborn one")
    me.shows("I begin, and")
    owner = psutil.Process(other.process.pid)
    owner.suspend()
    try:
        me.find("button.stop").click()
        me.shows("Stopping")
        me.wait_for(lambda: me.find("button.force").count() == 1, "more force")
        me.screenshot("e2e-force-stop-light")
        me.find("button.force").click()
        me.window.notification("It was asked again").wait_for()
    finally:
        owner.resume()
    me.calm()


def test_a_long_session_opens_at_once_and_then_costs_nothing(place: Made):
    here = place(TALK)
    other = here.other()
    long = "ses_" + "0" * 25 + "1"
    other.call("session/import", content=long_session(long, str(here.project), 5000))
    other.call("session/update", sessionId=long, title="The long one")
    other.create(here.project, title="The short one")
    before = here.code.extension_hosts()
    me = here.window(1280, 800)
    me.command("View: Show Callboard")
    short_row, long_row = (
        me.window.row("Sessions", "The short one"),
        me.window.row("Sessions", "The long one"),
    )
    times: list[float] = []
    for _ in range(3):
        short_row.click()
        me.shows("Nothing was said yet")
        me.chat().evaluate(
            """() => {
              const seen = () => {
                if (/ 5000$/m.test(document.querySelector("[role=log]").innerText)) {
                  requestAnimationFrame(() => { window.seenAt = Date.now(); });
                } else {
                  requestAnimationFrame(seen);
                }
              };
              seen();
            }"""
        )
        me.page.evaluate(
            """() => window.addEventListener("pointerdown", () => { window.pressedAt = Date.now(); },
              { capture: true, once: true })"""
        )
        long_row.click()
        seen = me.wait_for(lambda: me.chat().evaluate("() => window.seenAt"), "the last message")
        times.append(seen - me.page.evaluate("() => window.pressedAt"))
        me.chat().evaluate("() => { delete window.seenAt; }")
    me.screenshot("e2e-long-dark")
    assert min(times) < 1000, times
    # Nothing is asked for over and over, and no clock ticks where none is shown.
    me.page.mouse.move(700, 300)
    hosts = [host for host in here.code.extension_hosts() if host not in before]
    assert len(hosts) == 1
    idle = [used(me, hosts[0]) for _ in range(3)]
    assert min(idle) <= IDLE_CPU_S, idle


IDLE_CPU_S = 0.03
"""What an extension host that has nothing to do may use in a second."""


def used(me: ChatWindow, process: psutil.Process) -> float:
    """The processor time (s) that a process takes within a second."""

    def total() -> float:
        times = process.cpu_times()
        return times.user + times.system

    before = total()
    me.page.wait_for_timeout(1000)  # this is what is measured, not waited for
    return total() - before


FEATURES = {"CALLBOARD_FEATURES": "agents.interrupts,agents.messaging"}


def test_a_group_of_four_is_a_tree_and_its_tasks_are_moved_by_keys(place: Made):
    here = place(
        TALK, theme="light", environ=FEATURES, settings={"callboard.approvals.notify": "never"}
    )
    other = here.other()
    root = other.create(here.project, title="The team")
    tasks = [
        other.call("group/taskCreate", rootId=root, title=title)["task"]["taskId"]
        for title in ("Write the parser", "Test the parser")
    ]
    other.call(
        "group/taskCreate", rootId=root, title="Document the parser", dependencies=[tasks[0]]
    )
    for name in ("asker", "sleeper", "typist", "helper"):
        other.call("agent/spawn", parentId=root, name=name, message="Do it.")
    me = here.window(1440, 900)
    me.command("View: Show Callboard")
    me.window.open_row("Sessions", "The team")
    me.unfold("Agents")
    for pane in ("Sessions", "Chat"):
        me.unfold(pane, fold=True)
    rows = lambda: me.window.rows("Agents")  # noqa: E731
    for wanted in ("asker waits for a reply", "sleeper running", "typist", "helper completed"):
        me.wait_for(
            lambda wanted=wanted: any(row.startswith(wanted) for row in rows()), f"{wanted!r}"
        )
    assert rows()[0].startswith("The team")
    me.wait_for(lambda: any("1.2k tokens" in row for row in rows()), "what it used")
    me.command("Callboard: Open the Task Board")
    board = lambda: me.wait_for(lambda: me.window.frame(".columns"), "the board")  # noqa: E731
    card = lambda title: board().get_by_role("button", name=title).first  # noqa: E731
    card("Write the parser").focus()
    me.screenshot("e2e-team-light-wide")
    me.page.keyboard.press("Shift+ArrowRight")
    me.wait_for(
        lambda: (
            "claimed"
            in {task["status"] for task in other.call("group/taskList", rootId=root)["data"]}
        ),
        "the task as claimed",
    )
    active = board().locator(".column.active")
    me.wait_for(lambda: "Write the parser" in active.inner_text(), "it in its column")
    assert me.window.axe(board()) == []
    me.screenshot("e2e-board-light-wide")


def test_in_restricted_mode_no_server_starts_until_trust_is_given_and_none_is_left(
    browser: Browser, shared: Path, tmp_path: Path
):
    code = CodeServer(browser, installed(shared), tmp_path, scenario=TALK, trusted=False)
    try:
        me = ChatWindow(code.open(size=(1000, 760)))
        me.page.get_by_role("button", name="No, I don't trust the authors").click()
        me.command("View: Show Callboard")
        me.shows("Restricted Mode", "no server is started")
        words = "This window is in Restricted Mode"
        me.wait_for(lambda: words in me.window.pane("Sessions").inner_text(), "words in the list")
        assert code.servers() == []
        me.page.mouse.move(600, 500)
        me.screenshot("e2e-restricted-dark")
        me.find(".place").get_by_role("button", name="Manage trust").click()
        me.page.get_by_role("button", name="Trust", exact=True).first.click()
        me.wait_for(lambda: len(code.servers()) == 1, "a server")
        me.gone("Restricted Mode")
        me.begin()
        me.say("hello")
        me.shows("You said: hello")
        me.calm()
    finally:
        code.close()  # fails when it leaves a process
    assert code.processes() == []


HOSTILE = r"""
rules:
  - when: {last_user: {regex: "show me"}, step: 0}
    answer:
      - say: |
          <script>alert(1)</script><img src="https://elsewhere.test/a.png" onerror="alert(2)">
          <iframe src="https://elsewhere.test"></iframe><b onclick="alert(3)">bold</b>

          ![picture](https://elsewhere.test/b.png) [run](command:workbench.action.terminal.new)
          [go](javascript:alert(4)) [out](https://elsewhere.test/c) $(error)

          <style>* { display: none }</style>

          | a | b |
          |---|---|
          | שלום עולם | مرحبا |

          ```html
          <img src=x onerror=alert(5)>
          ```
      - call:
          tool: run_command
          arguments:
            command: "printf '<img src=https://elsewhere.test/d.png onerror=alert(6)>\\033[31mred\\033[0m\\a' # \u202etxt.exe"
      - call:
          tool: write_file
          arguments:
            path: "<img src=x onerror=alert(7)> $(error) [x](command:y).md"
            content: "<script>alert(8)</script>\n"
  - when: {last_tool: {contains: ""}}
    answer: [{say: "שלום! זה הכל. **סוף**"}]
default:
  - say: "You said: {{last_user}}"
"""
NAME = "<b>bold</b> $(error) [x](command:y) <img src=https://elsewhere.test/t.png>"


def test_hostile_text_is_only_text_and_the_page_is_accessible(place: Made):
    here = place(HOSTILE)
    other = here.other()
    other.create(here.project, title=NAME)
    me = here.window(760, 900)
    dialogs: list[str] = []
    asked: list[str] = []

    def dialog(shown: Dialog) -> None:
        dialogs.append(shown.message)
        shown.dismiss()

    me.page.on("dialog", dialog)
    me.page.context.on("request", lambda request: asked.append(request.url))
    me.page.context.add_init_script(
        """window.broken = [];
        document.addEventListener("securitypolicyviolation",
          (event) => window.broken.push(`${event.violatedDirective} ${event.blockedURI}`));"""
    )
    me.command("View: Show Callboard")
    me.window.open_row("Sessions", "bold")
    me.shows("Nothing was said yet")
    me.say("show me <i>everything</i> & more")
    me.wait_for(lambda: me.find("[data-approval]").count() == 2, "two approvals")
    assert r"# \u202etxt.exe" in me.text()
    # Taller than the view: what is asked comes before how it may be answered.
    expect(me.find("[data-approval] h3").first).to_be_in_viewport(timeout=30_000)
    me.screenshot("e2e-hostile-dark-narrow")
    for _ in range(2):
        card = me.find("[data-approval]").first
        key = card.get_attribute("data-approval")
        card.get_by_role("button", name="Allow once").click()
        me.wait_for(lambda key=key: me.find(f"[data-approval='{key}']").count() == 0, "its end")
    me.shows("שלום! זה הכל.")
    me.calm()
    assert me.chat().evaluate("() => window.broken") == []
    assert me.find("img, iframe, script[src*=elsewhere], [onclick], [onerror]").count() == 0
    assert me.find("a[href^='command:'], a[href^='javascript:']").count() == 0
    me.command("Callboard: Open a Session")
    me.page.locator(".quick-input-list .monaco-list-row").filter(has_text="$(error)").wait_for()
    assert me.page.locator(".quick-input-list .codicon-error").count() == 0
    me.page.keyboard.press("Escape")
    me.command("Callboard: Show the Changes of the Session")
    me.window.open_row("Changes", "<img src=x")
    me.page.locator(".monaco-diff-editor").wait_for()
    assert dialogs == []
    assert [url for url in asked if "elsewhere.test" in url] == []
    for theme in ("dark", "light"):
        here.set({"workbench.colorTheme": THEMES[theme]})
        me.wait_for(
            lambda theme=theme: me.find(f"body.vscode-{theme}").count() == 1, f"the {theme} theme"
        )
        assert me.window.axe(me.chat()) == []
        me.screenshot(f"e2e-hostile-{theme}-done")


FLOOD = r"""
rules:
  - when: {last_user: flood}
    answer:
      - say: "drop by "
        repeat: 4000
        chunk: 8
        chars_per_second: 8000
      - say: "the end."
default: "You said: {{last_user}}"
"""


def test_a_thousand_pieces_a_second_leave_the_keys_alone(place: Made):
    here = place(FLOOD)
    me = here.window(1100, 800).begin()
    me.say("flood")
    me.shows("drop by drop")
    me.chat().evaluate(
        """() => {
          window.waits = [];
          const field = document.getElementById("composer");
          field.focus();
          field.addEventListener("keydown", (event) => requestAnimationFrame(() => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => window.waits.push(performance.now() - event.timeStamp);
            port2.postMessage(0);
          }));
        }"""
    )
    typed = 0
    while "the end." not in me.text():
        for _ in range(10):
            me.page.keyboard.press("x")
        typed += 10
    waits = sorted(me.chat().evaluate("() => window.waits"))
    assert me.composer().input_value() == "x" * typed
    shown = plain(me.find(".answer .prose").last.inner_text())
    assert shown == "drop by " * 4000 + "the end."
    # Half of them at once, and but for a few on a busy machine none so late that a person sees it.
    assert waits[len(waits) // 2] < 50, waits
    assert waits[len(waits) * 9 // 10] < 200, waits
