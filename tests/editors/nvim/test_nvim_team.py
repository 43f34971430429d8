"""The tree of agents and the task board: live, and driven with keys, against the real server."""

import re
from typing import Any

import pytest
from asking import ask

from harness.scripted_team import FEATURES, SCENARIO


class Team:
    """An editor with a session, and what another client might do to it meanwhile."""

    def __init__(self, editor: Any) -> None:
        self.editor = editor
        self.root = self.ask("session/create", cwd=str(editor.workspace), title="The team")[
            "session"
        ]["sessionId"]

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request of the editor's own connection."""
        return ask(self.editor, method, **params)

    def spawn(self, name: str) -> str:
        return self.ask("agent/spawn", parentId=self.root, name=name, message="Do it.")["agent"][
            "agentId"
        ]

    def task(self, title: str, **params: Any) -> str:
        return self.ask("group/taskCreate", rootId=self.root, title=title, **params)["task"][
            "taskId"
        ]

    def open(self, page: str) -> None:
        self.editor.lua(f"require('callboard.ui.{page}').open(...)", self.root)
        self.editor.wait_for(
            lambda: "callboard://" + page in self.editor.lua("return vim.fn.bufname()")
        )

    def go_to(self, text: str) -> None:
        """The cursor to the line that holds a text."""
        self.editor.wait_for(text)
        assert self.editor.lua("return vim.fn.search(..., 'cw')", r"\V" + text) > 0


@pytest.fixture
def team(open_editor):
    return Team(open_editor(scenario=SCENARIO, environ=FEATURES))


# --- agents -------------------------------------------------------------------------------------------


def test_the_tree_is_live_and_a_question_is_replied_to(team):
    editor = team.editor
    team.open("agents")
    editor.wait_for("No agents yet")
    team.spawn("asker")
    editor.wait_for(re.compile(r"└─ \? asker  waits for a reply"))
    editor.wait_for("asks: Which of the two?")
    team.go_to("asks: Which")
    editor.keys("r")
    editor.wait_for("asker asks: Which of the two?")
    editor.keys("The second.<CR>")
    editor.wait_for(re.compile(r"└─ ✓ asker  completed .*1\.2k tokens"))
    editor.wait_for("reported: Then the second.")


def test_agents_are_corrected_stopped_continued_and_closed(team):
    editor = team.editor
    team.spawn("sleeper")
    team.open("agents")
    team.go_to("● sleeper  running")
    editor.keys("s")
    editor.wait_for("What should sleeper do instead?")
    editor.keys("Count sheep.<CR>")
    editor.wait_for("sleeper is told at its next step")
    editor.wait_for("is about to be corrected")
    editor.keys("x")
    editor.wait_for("Why should sleeper stop?")
    editor.keys("It is late.<CR>")
    editor.wait_for("winds down")
    editor.keys("X")
    editor.wait_for("sleeper is being stopped")
    editor.wait_for("■ sleeper  interrupted")
    editor.keys("X")
    editor.wait_for("no turn of sleeper runs")
    editor.keys("c")
    editor.wait_for("What should sleeper go on with?")
    editor.keys("Sleep again.<CR>")
    editor.wait_for("● sleeper  running")
    editor.keys("m")
    editor.wait_for("Message to sleeper")
    editor.keys("Good night.<CR>")
    editor.wait_for("1 message for its next step")
    editor.keys("D")
    editor.wait_for("D again closes sleeper, and those below it, for good")
    assert "● sleeper  running" in editor.text()
    editor.keys("D")
    editor.wait_for("- sleeper  closed")


def test_a_first_press_to_close_is_forgotten_after_another_key(team):
    editor = team.editor
    team.spawn("sleeper")
    team.open("agents")
    team.go_to("● sleeper  running")
    editor.keys("D")
    editor.wait_for("D again closes sleeper")
    editor.keys("gr")
    editor.wait_gone("D again closes sleeper")
    editor.keys("D")
    editor.wait_for("D again closes sleeper")
    assert "closed" not in editor.text()


def test_what_the_server_cannot_do_is_refused_in_one_line(open_editor):
    editor = open_editor(scenario=SCENARIO)
    team = Team(editor)
    team.spawn("sleeper")
    team.open("agents")
    team.go_to("● sleeper  running")
    editor.keys("s")
    editor.wait_for(lambda: 'features = ["agents.interrupts"]' in editor.said())
    assert "What should" not in editor.text()


def test_keys_on_the_session_itself_say_where_to_go(team):
    editor = team.editor
    team.spawn("sleeper")
    team.open("agents")
    team.go_to("The team  idle")
    for count, key in enumerate("mXDr", 1):
        editor.keys(key)
        editor.wait_for(lambda n=count: editor.said().count("this is the session itself") == n)


def test_times_go_on_only_while_they_are_looked_at(open_editor):
    editor = open_editor(
        scenario=SCENARIO,
        init="""
          _G.timers = {}
          local new_timer = vim.uv.new_timer
          vim.uv.new_timer = function(...)
            local timer = new_timer(...)
            table.insert(_G.timers, timer)
            return timer
          end
        """,
    )

    def ticking() -> int:
        return editor.lua(
            "return #vim.tbl_filter(function(t)"
            " return not t:is_closing() and t:is_active() and t:get_repeat() > 0 end, _G.timers)"
        )

    team = Team(editor)
    sleeper = team.spawn("sleeper")
    team.open("agents")
    editor.wait_for("● sleeper  running 1 s")
    editor.wait_for(re.compile(r"● sleeper  running [23] s"))
    assert ticking() == 1
    editor.command("tabnew")
    editor.wait_for(lambda: ticking() == 0)
    editor.command("tabclose")
    editor.wait_for(lambda: ticking() == 1)
    editor.command("hide")
    editor.wait_for(lambda: ticking() == 0)
    team.open("agents")
    editor.wait_for(lambda: ticking() == 1)
    team.ask("agent/interrupt", agentId=sleeper, kind="abort")
    editor.wait_for("■ sleeper  interrupted")
    assert ticking() == 0


def test_the_cursor_stays_on_its_agent_while_others_come(team):
    editor = team.editor
    team.spawn("sleeper")
    team.open("agents")
    team.go_to("● sleeper  running")
    editor.keys("fr")
    column = editor.lua("return vim.api.nvim_win_get_cursor(0)[2]")
    team.spawn("asker")
    editor.wait_for("asks: Which of the two?")
    assert "sleeper" in editor.lua("return vim.api.nvim_get_current_line()")
    assert editor.lua("return vim.api.nvim_win_get_cursor(0)[2]") == column


def test_a_server_that_dies_leaves_the_tree_as_it_was_and_brings_it_back(team):
    editor = team.editor
    team.spawn("sleeper")
    team.open("agents")
    team.go_to("● sleeper  running")
    editor.kill_server()
    editor.wait_for("The server has ended; it is started again")
    assert "sleeper" in editor.text()
    editor.wait_for("■ sleeper  interrupted")
    editor.wait_gone("The server has ended")


@pytest.mark.parametrize("size", [(80, 24), (200, 40)], ids=["narrow", "wide"])
def test_both_pages_are_whole_at_any_width(open_editor, size):
    editor = open_editor(scenario=SCENARIO, environ=FEATURES, size=size)
    team = Team(editor)
    name = "a name of many words " * 8
    agent = team.ask("agent/spawn", parentId=team.root, name=name[:60], message="x")["agent"]
    team.task("A title of many words " * 8 + "\x1b[2J\u202e", expectedPaths=["x" * 300])
    task = team.task("Second")
    team.ask("group/taskClaim", rootId=team.root, taskId=task)
    team.ask("group/taskBlock", rootId=team.root, taskId=task, reason="many reasons " * 100)
    team.open("agents")
    editor.wait_for("completed")
    team.open("tasks")
    editor.wait_for("many reasons")
    assert "<1B>[2J<U+202E>" in "".join(editor.buffer())
    for page in ("agents", "tasks"):
        team.open(page)
        assert editor.lua("return vim.wo.wrap")
        for row in editor.screen():
            assert len(row) <= size[0]
    assert agent["name"].startswith("a name")


# --- tasks --------------------------------------------------------------------------------------------


def test_a_board_is_made_and_driven_with_keys_alone(team):
    editor = team.editor
    team.open("tasks")
    editor.wait_for("No group yet: n makes the first task")
    editor.keys("n")
    editor.wait_for("What is to be done?")
    editor.keys("Write the parser<CR>")
    editor.wait_for("○ Write the parser  required")
    editor.keys("n")
    editor.wait_for("What is to be done?")
    editor.keys("Document it<CR>")
    editor.wait_for("What must be done before it?")
    editor.keys("2<CR>")
    editor.wait_for("· Document it  required")
    editor.wait_for('waits for "Write the parser"')
    team.go_to("○ Write the parser")
    editor.keys("c")
    editor.wait_for("● Write the parser  root  required")
    editor.keys("s")
    editor.wait_for("in progress")
    editor.keys("u")
    editor.wait_for("○ Write the parser  required")
    editor.keys("c")
    editor.wait_for("● Write the parser  root  required")
    editor.keys("d")
    editor.wait_for('What came of "Write the parser"?')
    editor.keys("It parses.<CR>")
    editor.wait_for("✓ Write the parser  root")
    editor.wait_for("It parses.")
    team.go_to("○ Document it")
    editor.keys("c")
    editor.wait_for("● Document it  root")
    editor.keys("b")
    editor.wait_for('What blocks "Document it"?')
    editor.keys("No words.<CR>")
    editor.wait_for("✗ Document it  root")
    editor.wait_for("No words.")
    editor.keys("x")
    editor.wait_for('Why is "Document it" cancelled?')
    editor.keys("<CR>")
    editor.wait_for("- Document it")
    editor.wait_for("2 tasks: 1 done, 1 cancelled")


def test_esc_leaves_all_as_it_is(team):
    editor = team.editor
    team.task("Only this")
    team.open("tasks")
    team.go_to("○ Only this")
    for key, title in {"x": "cancelled?", "d": "What came of", "n": "What is to be done?"}.items():
        editor.keys(key)
        editor.wait_for(title)
        editor.keys("words<Esc><Esc>")
        editor.wait_gone(title)
    editor.keys("gr")
    assert [
        task["title"] for task in team.ask("group/taskList", rootId=team.root, status="all")["data"]
    ] == ["Only this"]
    assert "1 task: 1 ready" in editor.text()


def test_no_other_key_changes_the_board(team):
    editor = team.editor
    team.task("Only this")
    team.open("tasks")
    team.go_to("○ Only this")
    before = editor.buffer()
    for keys in ("yyp", "J", "~", "rX", "iX<Esc>", ">>", "P", "DD", ":1,2d<CR>", ":%s/O/o/<CR>"):
        editor.keys(keys + "<Esc>")
    editor.keys(":echo 'no' .. 'thing'<CR>")
    editor.wait_for("nothing")
    assert editor.buffer() == before
    assert team.ask("group/get", rootId=team.root)["group"]["counts"]["ready"] == 1


def test_a_refusal_of_the_server_is_one_line(team):
    editor = team.editor
    team.task("Only this")
    team.open("tasks")
    team.go_to("○ Only this")
    editor.keys("s")
    editor.wait_for(lambda: 'could not start "Only this"' in editor.said())
    assert re.fullmatch(
        r'Callboard: could not start "Only this": task \S+ is pending; only one that is claimed can be'
        r" started",
        editor.said(),
    )
    assert not editor.mode()["blocking"]


def test_changes_of_others_show_at_once_and_members_get_tasks_and_words(team):
    editor = team.editor
    first = team.task("First")
    team.open("tasks")
    editor.wait_for("○ First")
    agent = team.ask(
        "agent/spawn", parentId=team.root, name="sleeper", message="Sleep.", taskId=first
    )["agent"]
    editor.wait_for("● First  sleeper")
    editor.wait_for("sleeper (running)")
    team.ask("agent/interrupt", agentId=agent["agentId"], kind="abort")
    editor.wait_for("nobody is at it: sleeper is interrupted")
    team.task("Second")
    team.go_to("○ Second")
    editor.keys("A")
    editor.wait_for('Who is to do "Second"?')
    editor.keys("2<CR>")
    editor.wait_for("● Second  sleeper")
    editor.keys("m")
    editor.wait_for("To whom?")
    editor.keys("2<CR>")
    editor.wait_for("Message to sleeper")
    editor.keys("Mind the gap.<CR>")
    editor.wait_for(lambda: "sent to 1 member" in editor.said())
    editor.lua("require('callboard.ui.tasks').say(...)", team.root, "To all of you")
    editor.wait_for(lambda: editor.said().count("sent to 1 member") == 2)
    sent = team.ask("group/messageList", rootId=team.root, agentId=agent["agentId"])["data"]
    assert [message["text"] for message in sent] == ["To all of you", "Mind the gap."]


def test_a_task_opens_whole(team):
    editor = team.editor
    team.task("Write it", description="Line one\nline two", expectedPaths=["docs/a.md"])
    team.open("tasks")
    team.go_to("○ Write it")
    editor.keys("<CR>")
    editor.wait_for(re.compile(r"about +Line one"))
    editor.wait_for(re.compile(r"expects +docs/a\.md"))
    editor.keys("q")
    editor.wait_gone("expects")
    assert "Write it" in editor.text()


def test_a_hidden_board_follows_nothing_and_is_right_when_it_is_shown_again(team):
    editor = team.editor
    team.task("First")
    team.open("tasks")
    editor.wait_for("○ First")
    editor.command("hide")
    team.task("Second")
    team.open("tasks")
    editor.wait_for("○ Second")
    editor.keys("g?")
    editor.wait_for("Give it to a member")
    editor.keys("q")
    editor.wait_gone("Give it to a member")
    editor.keys("q")
    editor.wait_for(lambda: editor.lua("return vim.fn.bufnr('callboard://tasks')") == -1)
