"""The chat: what is written and shown, with real keys, a real server and a scripted model."""

import re

import pytest

SCENARIO = r"""
chars_per_second: 400
rules:
  - name: hang
    when: {last_user: {regex: "^hang$"}}
    answer:
      - say: "I begin, and then"
      - hang: true
  - name: stream
    when: {last_user: stream}
    answer:
      - think: "A thought.\nOf two lines."
      - say: "The beginning.\n\n"
      - say: "More and more words. "
        repeat: 30
      - say: "The end."
  - name: slow
    when: {last_user: slow, step: 0}
    answer:
      - say: "Working."
      - call: {tool: run_command, arguments: {command: "sleep 600"}}
  - name: list
    when: {last_user: look around, step: 0}
    answer:
      - call: {tool: list_files, arguments: {path: .}}
  - name: listed
    when: {last_tool: list_files, last_user: look around}
    answer: "Seen: `notes.txt`."
  - name: large
    when: {last_user: large, step: 0}
    answer:
      - call: {tool: read_file, arguments: {path: large.txt}}
  - name: write
    when: {last_user: {regex: "write (\\S+)"}, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: "{{match.1}}", content: "one\ntwo\n"}}
  - name: wrote
    when: {last_tool: {name: write_file, status: ok}}
    answer: "It is written."
  - name: fail
    when: {last_user: fail}
    answer:
      - fail: {kind: modelUnavailable, message: "The model is not there."}
  - name: many
    when: {last_user: many, step: 0}
    answer:
MANY_CALLS
  - name: did many
    when: {last_tool: list_files}
    answer: "That was a lot."
default: "You said: {{last_user}}"
""".replace(
    "MANY_CALLS",
    "\n".join("      - call: {tool: list_files, arguments: {path: .}}" for _ in range(60)),
)


def chat(open_editor, **settings):
    """An editor with a chat, and the cursor in its input."""
    editor = open_editor(scenario=SCENARIO, **settings)
    editor.command("Callboard chat")
    editor.wait_for("A new session in")
    return editor


def say(editor, text):
    editor.keys("i")
    editor.type(text)
    editor.keys("<C-s><Esc>")


def transcript(editor):
    return "\n".join(editor.buffer("callboard://chat/"))


def input_text(editor):
    return "\n".join(editor.buffer("callboard://input/"))


def session_id(editor):
    return editor.lua("return require('callboard.ui.chat').current()")


def to_chat(editor):
    editor.command(
        "lua vim.api.nvim_set_current_win(vim.fn.bufwinid(vim.fn.bufnr('callboard://chat/')))"
    )


def answer(editor, number):
    """Without the pause in which a key that was meant for the text is not taken for an answer."""
    editor.lua("require('callboard.model.answers').HOLD_MS = 0")
    to_chat(editor)
    editor.keys(str(number))


def test_the_first_thing_said_begins_the_session(open_editor):
    editor = chat(open_editor)
    assert session_id(editor) is None
    say(editor, "hello")
    editor.wait_for("You said: hello")
    editor.wait_for("idle")
    assert session_id(editor).startswith("ses_")
    assert "── You ──\nhello\n\n── Agent ──\nYou said: hello" in transcript(editor)
    assert input_text(editor) == ""
    # The name of what was there before the session was there is gone.
    assert editor.lua("return vim.fn.bufnr('callboard://chat/new')") == -1


def test_a_stream_is_followed_and_stays_as_it_came(open_editor):
    editor = chat(open_editor)
    say(editor, "stream")
    editor.wait_for("More and more words.")
    editor.wait_for("The end.")
    editor.wait_for(re.compile(r"── done"))
    text = transcript(editor)
    assert "The beginning.\n\n" + "More and more words. " * 30 + "The end.\n" in text
    assert text.count("The beginning.") == 1
    assert "  Thought\n  │ A thought.\n  │ Of two lines." in text
    # What was thought is folded, and opens.
    assert "Of two lines." not in editor.text()
    to_chat(editor)
    editor.keys("gg:call search('Thought')<CR>za")
    editor.wait_for("Of two lines.")


def test_what_is_said_meanwhile_waits_is_changed_and_dropped(open_editor):
    editor = chat(open_editor)
    say(editor, "slow")
    editor.wait_for("to approve")
    say(editor, "first thing")
    editor.wait_for("first thing")
    say(editor, "second thing")
    editor.wait_for("Waits for the end of the turn")
    editor.wait_for("- second thing")
    editor.command("Callboard queue")
    editor.wait_for(lambda: "first thing" in editor.lua("return vim.api.nvim_get_current_line()"))
    editor.keys("e")
    editor.wait_for("What waits")
    editor.keys("A, changed<Esc>:w<CR>")
    editor.wait_for("- first thing, changed")
    editor.keys("jx")
    editor.wait_gone("- second thing")
    editor.keys(":call search('first thing, changed')<CR>s")
    editor.wait_for("> at the next step: first thing, changed")
    answer(editor, 1)
    editor.wait_for("You said: first thing, changed")
    assert "(steered)" in transcript(editor)


def test_a_steer_goes_to_the_running_turn(open_editor):
    editor = chat(open_editor)
    say(editor, "slow")
    editor.wait_for("to approve")
    editor.keys("imind the name<Esc>gm")
    editor.wait_for("> at the next step: mind the name")
    answer(editor, 1)
    editor.wait_for("You said: mind the name")
    text = transcript(editor)
    assert "── You (steered) ──\nmind the name" in text
    assert "superseded" in text


def test_a_turn_is_stopped_and_says_so(open_editor):
    editor = chat(open_editor)
    say(editor, "hang")
    editor.wait_for("I begin, and")
    editor.wait_for("running")
    editor.keys("<C-c>")
    editor.wait_for("stops this turn")
    editor.wait_for("── stopped")
    editor.wait_for("idle")
    assert "(cut off here)" in transcript(editor)


def test_stopping_where_nothing_runs_says_that(open_editor):
    editor = chat(open_editor)
    say(editor, "hello")
    editor.wait_for("── done")
    editor.keys("<C-c>")
    editor.wait_for("no turn runs here")


def test_what_was_typed_is_there_after_hiding(open_editor):
    editor = chat(open_editor)
    editor.keys("ihalf a th<Esc>q")
    editor.wait_gone("half a th")
    assert editor.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 1
    editor.command("Callboard toggle")
    editor.wait_for("half a th")
    assert input_text(editor) == "half a th"


def test_what_cannot_be_sent_comes_back(open_editor):
    editor = open_editor(scenario=SCENARIO, server=["/nowhere/callboard", "serve"])
    editor.command("Callboard chat")
    editor.keys("ikeep this<C-s><Esc>")
    editor.wait_for("No server")
    editor.wait_for(lambda: input_text(editor) == "keep this")
    editor.wait_for("no server: :Callboard restart")
    editor.keys(":messages clear<CR>")
    # With something else in the input it goes to a register.
    editor.lua("require('callboard.ui.chat').send({ text = 'and that' })")
    editor.wait_for(lambda: editor.lua("return vim.fn.getreg('c')") == "and that")
    assert input_text(editor) == "keep this"


def test_history_on_the_first_and_last_line_only(open_editor):
    editor = chat(open_editor)
    say(editor, "one")
    editor.wait_for("You said: one")
    say(editor, "two")
    editor.wait_for("You said: two")
    editor.keys("idraft<Up>")
    editor.wait_for(lambda: input_text(editor) == "two")
    editor.keys("<Up>")
    editor.wait_for(lambda: input_text(editor) == "one")
    editor.keys("<Down><Down>")
    editor.wait_for(lambda: input_text(editor) == "draft")
    editor.keys("<Esc>oend<Up>x")
    editor.wait_for(lambda: input_text(editor) == "draxft\nend")


def test_a_file_is_named_and_sent_along(open_editor):
    editor = open_editor(scenario=SCENARIO, arguments=["notes.txt"])
    (editor.workspace / "notes.txt").write_text("Some notes.\nSecond line.\n")
    (editor.workspace / "other.txt").write_text("Other.\n")
    editor.command("edit! notes.txt")
    editor.keys("Vj:Callboard add<CR>")
    editor.wait_for("+ notes.txt:1-2")
    editor.command("Callboard chat")
    editor.keys("iread @t")
    editor.wait_for("@notes.txt")
    editor.wait_for("@other.txt")
    editor.keys("<BS>oth<C-n><C-y> please<C-s><Esc>")
    editor.wait_for("You said: read @other.txt please")
    editor.wait_for("Some notes.")  # the server was told what was named
    text = transcript(editor)
    assert "  + notes.txt\n  + other.txt\n" in text


def test_where_the_person_was_is_offered_and_can_be_left_out(open_editor):
    editor = open_editor(scenario=SCENARIO, arguments=["notes.txt"])
    editor.command("Callboard chat")
    editor.wait_for("+ notes.txt")
    editor.keys("gx")
    editor.wait_gone("+ notes.txt")
    say(editor, "hello")
    editor.wait_for("You said: hello")
    assert "+ notes.txt" not in transcript(editor)


def test_a_large_output_is_cut_and_opens_whole(open_editor):
    editor = chat(open_editor)
    rows = "".join(f"row {n:05}\n" for n in range(20000))
    (editor.workspace / "large.txt").write_text(rows)
    say(editor, "large")
    editor.wait_for("Read large.txt")
    editor.wait_for("── done")
    assert len(transcript(editor)) < 4000
    to_chat(editor)
    editor.keys("gg:call search('Read large')<CR><CR>")
    editor.wait_for("row 00002")
    assert editor.lua("return vim.bo.modifiable") is False
    assert "row 00024" in "\n".join(editor.buffer())
    editor.keys("q")
    editor.wait_gone("row 00002")


def test_an_approval_is_answered_in_the_chat(open_editor):
    editor = chat(open_editor)
    say(editor, "write new.txt")
    editor.wait_for("! Create new.txt")
    to_chat(editor)
    editor.keys("gg]a")
    editor.wait_for(lambda: "new.txt" in editor.lua("return vim.api.nvim_get_current_line()"))
    answer(editor, 1)
    editor.wait_for("It is written.")
    assert (editor.workspace / "new.txt").read_text() == "one\ntwo\n"
    # The keys are gone with the approval.
    assert editor.lua("return vim.fn.maparg('1', 'n')") == ""


def test_a_failed_turn_says_why_and_what_to_do(open_editor):
    editor = chat(open_editor)
    say(editor, "fail")
    editor.wait_for("The model is not there.")
    editor.wait_for("── failed")
    text = transcript(editor)
    assert ":Callboard model picks another one." in text
    assert text.count("The model is not there.") == 1


DRAFTED = """
local id = require('callboard.ui.chat').current()
require('callboard.app').get():request('session/get', { sessionId = id }, function(_, got)
  _G.drafted = got and got.draft and got.draft.answer or ''
end)
return _G.drafted or ''
"""


def drafted(editor) -> str:
    """What the server has saved of the answer that streams, as of the last time that it was asked."""
    return editor.lua(DRAFTED)


def test_the_server_dies_in_mid_turn(open_editor):
    editor = chat(open_editor)
    say(editor, "hang")
    editor.wait_for("I begin, and")
    editor.keys("itypes on")
    editor.wait_for(lambda: "I begin" in drafted(editor), what="the draft")  # else nothing keeps it
    editor.kill_server()
    editor.wait_for("reconnecting")
    editor.wait_for("idle")
    editor.wait_for("interrupted")
    text = transcript(editor)
    assert text.count("── You ──\nhang") == 1
    assert text.count("I begin") <= 1  # as much of it as the server had kept
    assert input_text(editor) == "types on"
    editor.keys("<Esc>ddihello again<C-s><Esc>")
    editor.wait_for(re.compile("You said: .*hello again", re.DOTALL))


def test_files_open_beside_the_chat(open_editor):
    editor = chat(open_editor)
    (editor.workspace / "notes.txt").write_text("Some notes.\n")
    say(editor, "look around")
    editor.wait_for("Seen: `notes.txt`.")
    to_chat(editor)
    editor.keys("G?notes.txt<CR>gf")
    editor.wait_for("Some notes.")
    assert editor.lua("return vim.fn.expand('%:t')") == "notes.txt"
    assert "Seen:" in editor.text()


OURS = """
local kinds = vim.empty_dict()
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  local kind = vim.api.nvim_buf_get_name(buf):match('^callboard://(%a+)')
  if kind then kinds[kind] = vim.bo[buf].buftype end
end
return kinds
"""


def test_a_session_of_vim_brings_nothing_that_fails(open_editor):
    editor = chat(open_editor)
    say(editor, "hello")
    editor.wait_for("── done")
    editor.command("tabnew")
    for page in ("agents", "tasks", "changes"):
        editor.command(f"Callboard {page}")
    editor.command("tabfirst")
    editor.command("mksession! saved.vim")
    id = session_id(editor)
    again = open_editor(
        scenario=SCENARIO,
        store=editor.store,
        workspace=editor.workspace,
        arguments=["-S", "saved.vim"],
    )
    again.wait_for("You said: hello")
    again.wait_for("idle")
    assert not re.search(r"E\d+:", again.messages())
    again.wait_for(lambda: again.lua(OURS) == {"chat": "nofile", "input": "nofile"})
    again.lua("require('callboard.ui.chat').open(...)", id)
    say(again, "and again")
    again.wait_for("You said: and again")


def test_closing_windows_by_hand_leaves_no_half_chat(open_editor):
    editor = chat(open_editor)
    say(editor, "hello")
    editor.wait_for("── done")
    editor.keys(":q<CR>")
    to_chat(editor)
    editor.keys("i")
    editor.wait_for(lambda: editor.mode()["mode"] == "i")
    editor.keys("still here<Esc>")
    assert input_text(editor) == "still here"
    to_chat(editor)
    editor.keys(":q<CR>")
    editor.wait_for(lambda: editor.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 1)
    editor.command("Callboard toggle")
    editor.wait_for("You said: hello")
    editor.wait_for("still here")


def test_the_help_of_its_keys(open_editor):
    editor = chat(open_editor)
    editor.keys("g?")
    editor.wait_for("Send, or queue while a turn runs")
    editor.keys("q")
    to_chat(editor)
    editor.keys("g?")
    editor.wait_for("Show the change as a diff")


WATCH_TIMERS = """
local timers, new_timer = {}, vim.uv.new_timer
vim.uv.new_timer = function()
  local timer = new_timer()
  timers[#timers + 1] = timer
  return timer
end
_G.active_timers = function()
  return #vim.tbl_filter(function(timer)
    return not timer:is_closing() and timer:is_active()
  end, timers)
end
"""


def test_idle_is_idle(open_editor):
    editor = open_editor(scenario=SCENARIO, init=WATCH_TIMERS)

    def timers():
        return editor.lua("return _G.active_timers()")

    editor.command("Callboard chat")
    say(editor, "hang")
    editor.wait_for("running")
    assert timers() > 0  # seconds are counted
    editor.keys("q")
    editor.wait_gone("running")
    editor.wait_for(lambda: timers() == 0)  # nobody sees them
    editor.command("Callboard chat")
    editor.wait_for("running")
    editor.keys("<C-c>")
    editor.wait_for("── stopped")
    editor.wait_for(lambda: timers() == 0)


def test_what_was_before_is_loaded_on_demand(open_editor):
    editor = chat(open_editor, options={"render": {"max_items": 20}})
    say(editor, "the first thing")
    editor.wait_for("You said: the first thing")
    for _ in range(2):
        say(editor, "many")
        editor.wait_for("That was a lot.")
        editor.wait_for("idle")
        say(editor, "next")
        editor.wait_for("You said: next")
        editor.wait_for("idle")
    again = open_editor(
        scenario=SCENARIO, store=editor.store, options={"render": {"max_items": 20}}
    )
    again.lua("require('callboard.ui.chat').open(...)", session_id(editor))
    again.wait_for("You said: next")
    again.wait_for("idle")
    to_chat(again)
    again.keys("gg")
    again.wait_for(re.compile(r"▲ \d+ and more earlier"))
    assert "the first thing" not in transcript(again)

    def older():
        again.keys("gg<CR>")
        return "the first thing" in transcript(again)

    again.wait_for(older)
    again.keys("gg")
    again.wait_gone("▲")
    text = transcript(again)
    assert text.startswith("── You ──\nthe first thing\n")
    assert text.count("── You ──") == 5
    assert text.count("✓ List .") == 120


def test_a_session_that_is_deleted_while_it_is_shown(open_editor):
    editor = chat(open_editor)
    say(editor, "hello")
    editor.wait_for("── done")
    other = open_editor(scenario=SCENARIO, store=editor.store)
    other.lua(
        "require('callboard.app').get():request('session/delete', { sessionId = ... }, function() end)",
        session_id(editor),
    )
    editor.wait_for("this session was deleted")
    editor.wait_for("lost")
    editor.command("Callboard new")
    say(editor, "another")
    editor.wait_for("You said: another")


@pytest.mark.parametrize("position", ["left", "bottom", "tab"])
def test_where_the_chat_opens(open_editor, position):
    editor = chat(open_editor, size=(80, 30), options={"window": {"position": position}})
    say(editor, "hello")
    editor.wait_for("You said: hello")
    editor.keys("q")
    editor.wait_gone("You said: hello")
    assert editor.lua("return { #vim.api.nvim_list_tabpages(), #vim.api.nvim_list_wins() }") == [
        1,
        1,
    ]
    editor.command("Callboard toggle")
    editor.wait_for("You said: hello")
    editor.command("tabonly | only")  # the chat alone
    editor.wait_for("You said: hello")
    editor.wait_for("<CR> sends")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 2
    editor.keys("q")
    editor.wait_gone("<CR> sends")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1
    editor.command("Callboard toggle")
    editor.wait_for("You said: hello")


def test_a_stream_goes_on_while_nobody_looks(open_editor):
    editor = chat(open_editor)
    say(editor, "stream")
    editor.wait_for("More and more")
    editor.keys("q")
    editor.wait_gone("More and more")
    idle = "return require('callboard').status_table().running == 0"
    editor.wait_for(lambda: editor.lua(idle))
    editor.command("Callboard toggle")
    editor.wait_for("The end.")
    assert transcript(editor).count("The beginning.") == 1
    # What was thought is folded in the new window, too.
    assert "Of two lines." not in editor.text()


def test_two_chats_take_turns_in_one_place(open_editor):
    editor = chat(open_editor)
    say(editor, "one")
    editor.wait_for("You said: one")
    editor.keys("ifor the first<Esc>")
    first = session_id(editor)
    editor.command("Callboard new")
    editor.wait_gone("You said: one")
    editor.wait_for(lambda: session_id(editor) not in (None, first))
    say(editor, "two")
    editor.wait_for("You said: two")
    assert editor.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 3
    editor.lua("require('callboard.ui.chat').open(...)", first)
    editor.wait_for("You said: one")
    editor.wait_for("for the first")
    editor.wait_gone("You said: two")


def test_a_chat_that_is_opened_in_the_middle_of_a_message_has_its_first_pieces(
    open_editor, tmp_path
):
    """The stream stands still after them, and no draft of it was saved."""
    config = tmp_path / "editor1" / "home" / "config" / "callboard" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[draft]\ninterval_ms = 60000\nbytes = 1000000\n", "utf-8")
    editor = chat(open_editor)
    say(editor, "hang")
    editor.wait_for("I begin, and")
    editor.lua(
        """
        local session = require('callboard.ui.chat').of_session(...).session
        local before = session.transcript
        function READ_ANEW()
          local last = session.transcript.items[#session.transcript.items]
          return session.transcript ~= before and last and last.text
        end
        session:load()
        """,
        session_id(editor),
    )
    editor.wait_for(lambda: "I begin, and" in (editor.lua("return READ_ANEW()") or ""))
    editor.wait_for("I begin, and")
    assert "── You ──\nhang\n\n── Agent ──\nI begin, and" in transcript(editor)
