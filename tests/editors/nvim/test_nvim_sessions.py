"""Sessions as a whole, from the editor: lists, search, titles, forks, models, usage; real keys, a real server."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from asking import ask
from nvim_harness import Editor

SCENARIO = """
rules:
  - name: write
    when: {last_user: write, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: hello.txt, content: "Hello.\\n"}}
  - name: written
    when: {last_tool: {name: write_file}}
    answer:
      - say: It is written.
      - usage: {input_tokens: 1200, output_tokens: 34, cost: 0.5, currency: USD}
  - name: look
    when: {last_user: look, step: 0}
    answer: [LOOKS]
  - name: hang
    when: {last_user: hang}
    answer:
      - say: I am at it.
      - hang: true
default: I have nothing to say about that.
""".replace("LOOKS", ", ".join(["{call: {tool: list_files, arguments: {path: .}}}"] * 210))
"""`look` makes a session longer than the page that a chat begins with."""


OUTSIDER = Path(__file__).parents[2] / "harness" / "acp_agent.py"
WIDE = (180, 40)


def begin(editor: Editor, title: str, folder: Path | None = None, *, say: str | None = None) -> str:
    """A session of a folder, the editor's own without one; after its turn, if anything is said."""
    folder = folder or editor.workspace
    folder.mkdir(parents=True, exist_ok=True)
    made = ask(editor, "session/create", cwd=str(folder.resolve()), title=title)
    session = made["session"]["sessionId"]
    if say is not None:
        content = [{"type": "text", "text": say}]
        ask(editor, "session/prompt", sessionId=session, content=content)
        ask(editor, "session/wait", sessionId=session, until="attention")
    return session


def wait_told(editor: Editor, words: str) -> None:
    """Waits for a message; the plugin's log holds those that have no room below."""
    editor.wait_for(lambda: words in editor.messages() or words in editor.logs(), what=words)


def listed(editor: Editor) -> list[str]:
    """The lines of the list that is shown."""
    return [line for line in editor.buffer() if line.strip()]


def wait_for_list(editor: Editor, *lines: str) -> None:
    """Waits for the list in which these stand, in this order."""

    def there() -> bool:
        if editor.lua("return vim.bo.filetype") != "callboard-list":
            return False
        text = "\n".join(listed(editor))
        return re.search(".*".join(map(re.escape, lines)), text, re.DOTALL) is not None

    editor.wait_for(there, what=f"a list with {lines}")


def go_to(editor: Editor, text: str) -> None:
    """Puts the cursor on the line with that text."""
    editor.wait_for(lambda: any(text in line for line in editor.buffer()), what=text)
    pattern = text.replace("\\", "\\\\").replace("/", "\\/")
    editor.keys("gg")
    editor.type(f"/\\V{pattern}\n")


def open_chat(editor: Editor, session: str) -> None:
    editor.command(f"Callboard open {session}")
    editor.wait_for(lambda: editor.lua("return require('callboard.ui.chat').current()") == session)


@pytest.fixture
def editor(open_editor, tmp_path):
    return open_editor(scenario=SCENARIO)


def test_sessions_of_the_folder_are_listed_and_a_line_leads_to_the_others(editor, tmp_path):
    begin(editor, "Mine", say="hello")
    theirs = begin(editor, "Theirs", tmp_path / "elsewhere", say="hello")
    editor.command("Callboard sessions")
    wait_for_list(
        editor, "Sessions of", "Idle", "- done  Mine", "More", "1 of other folders is hidden"
    )
    assert not any("Theirs" in line for line in listed(editor))
    go_to(editor, "other folders")
    editor.keys("<CR>")
    wait_for_list(editor, "Mine", "Theirs", "elsewhere")
    go_to(editor, "Theirs")
    editor.keys("<CR>")
    editor.wait_for(lambda: editor.lua("return require('callboard.ui.chat').current()") == theirs)
    editor.wait_for("I have nothing to say about that.")
    assert editor.lua("return #vim.api.nvim_list_tabpages()") == 1


def test_what_needs_somebody_comes_first_and_from_every_folder(editor, tmp_path):
    begin(editor, "Mine", say="hello")
    begin(editor, "Asks", tmp_path / "elsewhere", say="write")
    begin(editor, "Works", say=None)
    editor.command("Callboard sessions")
    wait_for_list(editor, "Needs you", "! waits for you  Asks", "elsewhere", "Idle", "Mine")


def test_a_list_is_left_with_q_and_nothing_has_happened(editor):
    begin(editor, "Mine")
    editor.command("Callboard sessions")
    wait_for_list(editor, "Mine")
    editor.keys("q")
    editor.wait_for(lambda: editor.lua("return vim.bo.filetype") == "")
    assert editor.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 1


def test_a_session_gets_another_title_in_the_list(editor):
    session = begin(editor, "Old name")
    editor.command("Callboard sessions")
    wait_for_list(editor, "Old name")
    editor.keys("r")
    editor.wait_for("Title of the session")
    editor.keys("<C-u>New <lt>name><CR>")
    editor.wait_for(
        lambda: ask(editor, "session/get", sessionId=session)["session"]["title"] == "New <name>"
    )
    editor.command("Callboard sessions")
    wait_for_list(editor, "New <name>")


def test_a_session_is_archived_and_brought_back(editor):
    session = begin(editor, "Put away")
    open_chat(editor, session)
    editor.command("Callboard archive")
    editor.wait_for(
        lambda: ask(editor, "session/get", sessionId=session)["session"].get("archived")
    )
    begin(editor, "Another")
    editor.command("Callboard sessions")
    wait_for_list(editor, "Another", "archived ones")
    assert not any("Put away" in line for line in listed(editor))
    go_to(editor, "archived ones")
    editor.keys("<CR>")
    wait_for_list(editor, "Another", "Archived", ". archived  Put away")
    go_to(editor, "Put away")
    editor.keys("a")
    editor.wait_for(
        lambda: not ask(editor, "session/get", sessionId=session)["session"].get("archived")
    )


def test_a_session_is_deleted_only_after_a_second_word(editor):
    session = begin(editor, "Keep me")
    open_chat(editor, session)
    editor.command("Callboard delete")
    wait_for_list(editor, "Delete «Keep me»", "Keep it", "Delete it for good")
    editor.keys("<CR>")
    editor.wait_for(lambda: editor.lua("return vim.bo.filetype") != "callboard-list")
    assert ask(editor, "session/get", sessionId=session)

    editor.command("Callboard delete")
    wait_for_list(editor, "Delete it for good")
    go_to(editor, "for good")
    editor.keys("<CR>")
    editor.wait_for(lambda: ask(editor, "session/list")["data"] in ([], {}))
    # the chat that still shows it says what is the matter, and where to go
    editor.wait_for(re.compile("this session was\\s+deleted"))


def test_what_was_said_is_found_and_opened_where_it_stands(editor):
    session = begin(editor, "Long", say="the needle is in the first prompt; look around")
    head = ask(editor, "session/get", sessionId=session)["session"]["headSeq"]
    assert head > 420, "it is meant to be longer than a page"
    editor.command("Callboard sessions needle prompt")
    wait_for_list(
        editor, "Found for «needle prompt»", "Long", "said: the needle is in the first prompt"
    )
    editor.keys("<CR>")
    editor.wait_for(lambda: "needle" in editor.lua("return vim.api.nvim_get_current_line()"))
    assert editor.lua("return vim.bo.filetype") == "callboard-chat"
    editor.wait_for("the needle is in the first prompt")


def test_words_that_nobody_said_are_told(editor):
    begin(editor, "Short", say="hello")
    editor.command("Callboard sessions nowhere")
    wait_told(editor, "nothing was said with nowhere")


def test_undo_says_what_stays_and_fork_goes_on_from_there(editor):
    session = begin(editor, "To undo", say="write")
    approval = ask(editor, "approval/list", state="pending")["data"][0]
    option = next(o for o in approval["options"] if o["kind"] == "allow_once")
    ask(editor, "approval/answer", approvalId=approval["approvalId"], optionId=option["optionId"])
    ask(editor, "session/wait", sessionId=session, until="idle")
    open_chat(editor, session)
    editor.wait_for("It is written.")
    editor.command("Callboard undo")
    editor.wait_for("1 turn taken back")
    editor.wait_for(re.compile(r"These had been changed:.*hello\.txt", re.DOTALL))
    assert (editor.workspace / "hello.txt").read_text() == "Hello.\n"
    told = "\n".join(editor.buffer())
    editor.keys("q")
    editor.wait_gone("taken back")
    editor.wait_gone("It is written.")

    turn = re.search(r":Callboard (fork trn_\w+)", told)
    assert turn, told
    editor.command(f"Callboard {turn[1]}")
    editor.wait_for("It is written.")
    fork = editor.lua("return require('callboard.ui.chat').current()")
    assert fork != session
    assert (
        ask(editor, "session/get", sessionId=fork)["session"]["forkedFrom"]["sessionId"] == session
    )


def test_undo_of_nothing_is_told(editor):
    open_chat(editor, begin(editor, "New"))
    editor.command("Callboard undo")
    wait_told(editor, "there is no turn to take back yet")


def test_a_session_becomes_markdown_that_can_be_written(editor):
    open_chat(editor, begin(editor, "To: export/it", say="hello"))
    editor.command("Callboard export")
    editor.wait_for(lambda: editor.lua("return vim.bo.filetype") == "markdown")
    said = "\n".join(editor.buffer())
    assert "# To: export/it" in said
    assert "I have nothing to say about that." in said
    wait_told(editor, ":saveas To-export-it.md")
    editor.command("saveas To-export-it.md")
    assert "hello" in (editor.workspace / "To-export-it.md").read_text()


def test_the_model_is_picked_with_what_is_available(editor):
    session = begin(editor, "Models")
    open_chat(editor, session)
    editor.command("Callboard model")
    wait_for_list(editor, "Model of «Models»", "scripted/demo")
    models = ask(editor, "model/list")["data"]
    for model in models:
        line = next(line for line in listed(editor) if model["modelId"][:60] in line)
        assert ("not available: " in line) is not model["available"]
    assert any(line.lstrip().startswith("* scripted//") for line in listed(editor))
    go_to(editor, "scripted/demo")
    editor.keys("<CR>")
    editor.wait_for(
        lambda: (
            ask(editor, "session/get", sessionId=session)["session"].get("model") == "scripted/demo"
        )
    )


def test_a_model_that_there_is_not_is_told(editor):
    session = begin(editor, "Models")
    open_chat(editor, session)
    editor.command("Callboard model nobody/knows")
    wait_told(editor, "could not change the model")
    assert "model" not in ask(editor, "session/get", sessionId=session)["session"]


def test_the_mode_is_set_and_picked(editor):
    session = begin(editor, "Modes")
    open_chat(editor, session)
    editor.command("Callboard mode plan")
    editor.wait_for(
        lambda: ask(editor, "session/get", sessionId=session)["session"]["mode"] == "plan"
    )
    wait_told(editor, "the mode is plan now")
    editor.command("Callboard mode")
    wait_for_list(editor, "Mode of «Modes»", "  ask", "* plan", "  work")
    go_to(editor, "  work")
    editor.keys("<CR>")
    editor.wait_for(
        lambda: ask(editor, "session/get", sessionId=session)["session"]["mode"] == "work"
    )


def outsider(editor: Editor) -> str:
    """A session of an agent that is a program of its own and has said what it can be set to."""

    def select(option_id: str, category: str, current: str, **values: str) -> dict[str, Any]:
        options = [{"value": value, "name": name} for value, name in values.items()]
        told = {"id": option_id, "name": option_id.title(), "type": "select", "options": options}
        return {**told, "category": category, "currentValue": current, "description": "Chosen"}

    opened = [
        select("llm", "model", "s", s="Small one", l="Large one"),
        select("style", "mode", "code", code="Coder", chat="Chatter"),
    ]
    scene = editor.folder / "scene.json"
    scene.write_text(json.dumps({"opened": {"configOptions": opened}, "prompts": []}), "utf-8")
    agents = Path(editor.environ["CALLBOARD_CONFIG_DIR"]) / "agents"
    agents.mkdir(parents=True)
    command = json.dumps([sys.executable, str(OUTSIDER), str(scene)])
    (agents / "outsider.md").write_text(f"---\nkind: acp\ncommand: {command}\n---\n", "utf-8")
    made = ask(
        editor,
        "session/create",
        cwd=str(editor.workspace.resolve()),
        title="Outside",
        profile="outsider",
        mode="work",
    )
    session = made["session"]["sessionId"]
    open_chat(editor, session)
    editor.keys("ihello<C-s>")
    editor.wait_for("Coder · Small one")
    editor.keys("<Esc>")
    return session


def set_to(editor: Editor, session: str) -> dict[str, str]:
    options = ask(editor, "session/get", sessionId=session)["session"]["options"]
    return {each["optionId"]: each["value"] for each in options}


def test_the_options_of_an_agent_are_picked_with_models_and_modes(open_editor):
    editor = open_editor(scenario=SCENARIO, size=WIDE)
    session = outsider(editor)
    editor.command("Callboard model")
    wait_for_list(
        editor, "Model of «Outside»", "Llm of outsider: Small one  Chosen", "scripted/demo"
    )
    assert not any("Style" in line for line in listed(editor))
    go_to(editor, "Llm of outsider")
    editor.keys("<CR>")
    wait_for_list(editor, "Llm of outsider in «Outside»", "* Small one", "  Large one")
    go_to(editor, "Large one")
    editor.keys("<CR>")
    wait_told(editor, "Llm of outsider is Large one from the next prompt on")
    assert set_to(editor, session) == {"llm": "l", "style": "code"}
    editor.wait_for("Coder · Large one")

    editor.command("Callboard mode")
    wait_for_list(editor, "* work", "Style of outsider: Coder")
    go_to(editor, "Style of outsider")
    editor.keys("<CR>")
    wait_for_list(editor, "Style of outsider in «Outside»", "* Coder", "  Chatter")
    go_to(editor, "Chatter")
    editor.keys("<CR>")
    editor.wait_for("Chatter · Large one")
    assert set_to(editor, session) == {"llm": "l", "style": "chat"}


def test_an_option_is_picked_with_the_select_of_neovim_and_a_refusal_is_told(open_editor):
    editor = open_editor(scenario=SCENARIO, size=WIDE, options={"picker": "select"})
    session = outsider(editor)
    editor.lua(
        "_G.prompts = {}"
        " vim.ui.select = function(items, opts, done)"
        " table.insert(_G.prompts, opts.prompt)"
        " for _, item in ipairs(items) do"
        " if opts.format_item(item):find('Llm', 1, true) then return done(item) end end"
        " done({ value = 'huge', name = 'Huge' }) end"
    )
    editor.command("Callboard model")
    editor.wait_for(lambda: "could not change the Llm of outsider" in editor.said())
    assert "cannot be 'huge'; it can be s, l" in editor.said()
    assert editor.lua("return _G.prompts") == [
        "Model of «Outside»",
        "Llm of outsider in «Outside»",
    ]
    assert set_to(editor, session)["llm"] == "s"


def test_usage_says_what_is_not_known(editor):
    session = begin(editor, "Used", say="hello")
    open_chat(editor, session)
    editor.command("Callboard usage")
    editor.wait_for("Usage of «Used»")
    own = next(line for line in editor.buffer() if line.startswith("this session"))
    assert own.split()[2:] == ["1", "1", "?", "?", "?", "?"]
    editor.wait_for("Tokens: unknown or incomplete for 1 run.")
    editor.keys("<Esc>")
    editor.wait_gone("Usage of")


def test_a_beginning_that_several_ids_have_is_told_with_them(editor):
    begin(editor, "One")
    begin(editor, "Two")
    editor.command("Callboard open ses_")
    editor.wait_for(
        re.compile(r"2 sessions have an id that begins with ses_.*ses_\w+  One", re.DOTALL)
    )
    assert not editor.mode()["blocking"]
    editor.command("Callboard open ses_zzz")
    wait_told(editor, "no session has an id that begins with ses_zzz")


def test_the_newest_session_of_the_folder_is_resumed(editor, tmp_path):
    begin(editor, "First")
    newest = begin(editor, "Second", say="hello")
    begin(editor, "Elsewhere", tmp_path / "elsewhere", say="hello")
    editor.command("Callboard resume")
    editor.wait_for(lambda: editor.lua("return require('callboard.ui.chat').current()") == newest)
    editor.wait_for("Second")


def test_ids_are_completed_from_what_is_known(editor):
    session = begin(editor, "One")
    editor.command("Callboard sessions")
    wait_for_list(editor, "One")
    editor.keys("q")
    editor.type(":Callboard open ses_\t")
    editor.wait_for(f":Callboard open {session}")
    editor.keys("<Esc>")


def test_the_statusline_counts_what_runs_and_what_waits(editor, tmp_path):
    editor.command("set laststatus=2 statusline=<%{%v:lua.require'callboard'.status()%}>")
    editor.wait_for("<>")
    runs = begin(editor, "Runs")
    editor.wait_for("<callboard: ready>")
    content = [{"type": "text", "text": "hang"}]
    ask(editor, "session/prompt", sessionId=runs, content=content)
    editor.wait_for("<callboard: 1 running>")
    begin(editor, "Asks", tmp_path / "elsewhere", say="write")
    editor.wait_for("<callboard: 1 to approve, 1 running>")
    ask(editor, "session/cancel", sessionId=runs)
    editor.wait_for("<callboard: 1 to approve>")
    status = editor.lua("return require('callboard').status_table()")
    assert (status["server"], status["running"], status["approvals"]) == ("ready", 0, 1)


def test_user_autocommands_tell_what_happens(editor):
    editor.lua(
        """
        _G.seen = {}
        vim.api.nvim_create_autocmd('User', {
          pattern = 'Callboard*',
          callback = function(event)
            if event.match ~= 'CallboardStatus' then
              table.insert(_G.seen, { event.match, event.data })
            end
          end,
        })
        """
    )
    session = begin(editor, "Told")
    open_chat(editor, session)
    editor.wait_for(lambda: editor.lua("return vim.bo.filetype") == "callboard-input")
    editor.keys("iwrite<C-s>")
    editor.wait_for("Create hello.txt")
    approval = ask(editor, "approval/list", state="pending")["data"][0]
    option = next(o for o in approval["options"] if o["kind"] == "allow_once")
    ask(editor, "approval/answer", approvalId=approval["approvalId"], optionId=option["optionId"])
    ask(editor, "session/wait", sessionId=session, until="idle")

    def names() -> list[str]:
        return [name for name, _ in editor.lua("return _G.seen")]

    editor.wait_for(lambda: "CallboardTurnEnded" in names())
    wanted = {
        "CallboardServerReady",
        "CallboardSessionStarted",
        "CallboardTurnStarted",
        "CallboardToolStarted",
        "CallboardApprovalRequested",
        "CallboardApprovalResolved",
        "CallboardToolEnded",
        "CallboardTurnEnded",
    }
    editor.wait_for(lambda: wanted <= set(names()))
    seen = dict(editor.lua("return _G.seen"))
    assert set(seen) == wanted
    assert len(names()) == len(seen), "each happened once"
    assert seen["CallboardSessionStarted"] == {"sessionId": session}
    assert seen["CallboardApprovalRequested"]["title"] == approval["title"]
    assert seen["CallboardApprovalResolved"]["approvalId"] == approval["approvalId"]
    assert seen["CallboardTurnEnded"]["outcome"] == "completed"
    assert seen["CallboardToolEnded"]["name"] == "write_file"


def test_what_is_said_while_a_session_is_being_read_is_told_too(editor):
    """The page with which the chat begins holds the turn already."""
    session = begin(editor, "Told", say="hello")
    ask(editor, "session/wait", sessionId=session, until="idle")
    editor.lua(
        """
        _G.seen = {}
        vim.api.nvim_create_autocmd('User', {
          pattern = 'CallboardTurnStarted',
          callback = function(event) table.insert(_G.seen, event.data.turnId) end,
        })
        local app = require('callboard.app').get()
        local request = app.request
        app.request = function(self, method, params, done)
          if method == 'event/list' and not params.types then
            _G.read_on = function() request(self, method, params, done) end
          else
            return request(self, method, params, done)
          end
        end
        """
    )
    open_chat(editor, session)
    editor.wait_for(lambda: editor.lua("return vim.bo.filetype") == "callboard-input")
    editor.wait_for(lambda: editor.lua("return _G.read_on ~= nil"))
    editor.keys("ihello again<C-s>")
    editor.wait_for(lambda: len(started(editor, session)) == 2)
    editor.lua("_G.read_on()")
    editor.wait_for(lambda: editor.lua("return _G.seen") == started(editor, session)[1:])


def started(editor: Editor, session: str) -> list[str]:
    """The turns of a session."""
    scope = {"kind": "session", "id": session}
    told = ask(editor, "event/list", scope=scope, types=["turn_started"])["data"]
    return [event["data"]["turnId"] for event in told]


def test_without_a_server_there_is_one_message_with_the_way_out(open_editor):
    editor = open_editor(server=["/nowhere/callboard", "serve"])
    editor.command("Callboard sessions")
    wait_told(editor, "server.cmd names /nowhere/callboard")
    editor.wait_for("Correct the option, or leave it out.")
    assert "traceback" not in editor.messages() + editor.text()
    assert not editor.mode()["blocking"]
    assert editor.lua("return require('callboard').status()") == "callboard: no server"
    editor.keys("iStill an editor.<Esc>")
    assert editor.buffer() == ["Still an editor."]


def test_health_tells_the_server_that_runs(open_editor):
    editor = open_editor(scenario=SCENARIO, environ={"OPENAI_API_KEY": "sk-never-shown"})
    begin(editor, "One")
    editor.command("Callboard health")
    editor.wait_for(lambda: "Settings" in "\n".join(editor.buffer()), deadline=40)
    said = "\n".join(editor.buffer())
    for part in (
        "serve (found by server.cmd)",
        "protocol 1.0",
        "it runs: version",
        f"Store: {editor.store}",
        "Model: scripted/",
        "picker: a list in a window",
        "options: all are known",
        "OPENAI_API_KEY is set",
    ):
        assert part in said, said
    assert "sk-never-shown" not in said


def test_health_tells_a_server_that_is_not_there(open_editor):
    editor = open_editor(server=["/nowhere/callboard", "serve"], options={"widnow": {}})
    editor.command("checkhealth callboard")
    editor.wait_for(lambda: "Settings" in "\n".join(editor.buffer()))
    said = "\n".join(editor.buffer())
    assert "server.cmd names /nowhere/callboard, which is not there" in said
    assert "unknown option widnow" in said
    assert editor.server_pids() == []
