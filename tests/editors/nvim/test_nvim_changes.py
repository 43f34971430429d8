"""Changes of a session in Neovim: listed, shown as a diff, accepted or put back, also beside unsaved buffers."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nvim_harness import Editor

APP = "".join(f"line {n}\n" for n in range(1, 31))

SCENARIO = """
rules:
  - name: work
    when: {last_user: work, step: 0}
    answer:
      - call: {tool: edit_file, arguments: {path: app.txt, edits: [
          {old_text: "line 5\\n", new_text: "line five\\nline 5b\\n"},
          {old_text: "line 20\\n", new_text: "line twenty\\n"}]}}
      - call: {tool: write_file, arguments: {path: made.txt, content: "one\\ntwo\\n"}}
  - name: more
    when: {last_user: more, step: 0}
    answer:
      - call: {tool: edit_file, arguments: {path: app.txt, edits: [
          {old_text: "line 29\\n", new_text: "line twenty-nine\\n"}]}}
  - name: huge
    when: {last_user: huge, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: app.txt, content: "HUGE"}}
default: Done.
"""
TEAM = """
rules:
  - name: scout
    when: {last_user: {contains: You are the agent}, step: 0}
    answer:
      - call: {tool: edit_file, arguments: {path: app.txt, edits: [
          {old_text: "line 5\\n", new_text: "line five\\n"}]}}
  - name: delegate
    when: {last_user: delegate, step: 0}
    answer:
      - call: {tool: spawn_agent, arguments: {message: Change it, name: scout, wait: true}}
default: Done.
"""
HUGE = SCENARIO.replace("HUGE", "x{}\\n".format("y" * 50) * 3000)

START = """
local stay = ...
local app = require('callboard.app').get()
_G.ended = 0
app:change('session/create', { cwd = vim.uv.cwd(), title = 'Tidy up' }, 'begin', function(made)
  _G.session = made.session.sessionId
  require('callboard.ui.chat').open(_G.session, { focus = false })
  if not stay then require('callboard.ui.chat').hide() end
end)
vim.api.nvim_create_autocmd('User', { pattern = 'CallboardTurnEnded', callback = function(event)
  if event.data.sessionId == _G.session then _G.ended = _G.ended + 1 end
end })
"""
PROMPT = """
require('callboard.app').get():change('session/prompt', { sessionId = _G.session,
  content = { { type = 'text', text = (...) } } }, 'prompt')
"""

Opener = Callable[..., Editor]


@pytest.fixture
def begin(open_editor: Opener, tmp_path: Path) -> Callable[..., Editor]:
    """An editor whose agent may write without asking, with a session in which it did some work."""

    def start(
        *prompts: str,
        may: str = "allow",
        scenario: str = SCENARIO,
        chat: bool = False,
        **settings: Any,
    ) -> Editor:
        folder = settings.setdefault("folder", tmp_path / "first")
        config = folder / "home" / "config" / "callboard"
        config.mkdir(parents=True, exist_ok=True)
        (config / "config.toml").write_text(f'[approvals.policy]\nwrite = "{may}"\n')
        workspace = settings.get("workspace", folder / "workspace")
        workspace.mkdir(parents=True, exist_ok=True)
        (workspace / "app.txt").write_bytes(APP.encode())
        editor = open_editor(scenario=scenario, **settings)
        editor.lua(START, chat)
        editor.wait_for(lambda: editor.lua("return _G.session ~= nil"))
        for prompt in prompts:
            work(editor, prompt)
        return editor

    return start


def work(editor: Editor, prompt: str) -> None:
    """Has the agent work, to the end of the turn."""
    before = editor.lua("return _G.ended")
    editor.lua(PROMPT, prompt)
    editor.wait_for(lambda: editor.lua("return _G.ended") > before, what="the end of the turn")


def text_of(editor: Editor, name: str) -> str:
    return (editor.workspace / name).read_text("utf-8")


def said(editor: Editor) -> str:
    """All that was told: what is too long for the last line is in the log."""
    return " ".join((editor.messages() + editor.logs()).split())


def windows(editor: Editor) -> list[str]:
    """Names of the buffers in the windows of this tab page."""
    return editor.lua(
        "return vim.tbl_map(function(w) return vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(w)) end,"
        " vim.tbl_filter(function(w) return vim.api.nvim_win_get_config(w).relative == '' end,"
        " vim.api.nvim_tabpage_list_wins(0)))"
    )


def shows(editor: Editor, name: str) -> bool:
    """Whether a diff is open, of a file of that name: between two there is none."""
    return any(each.endswith(name) for each in windows(editor)[1:])


def review(editor: Editor) -> dict[str, Any]:
    """What the session's metadata keep of it."""
    editor.lua(
        "_G.got = nil; require('callboard.app').get():request('session/get', { sessionId = _G.session },"
        " function(_, got) _G.got = got.session end)"
    )
    editor.wait_for(lambda: editor.lua("return _G.got ~= nil"))
    return editor.lua("return _G.got.metadata or vim.empty_dict()") or {}


def settled(editor: Editor, name: str) -> str | None:
    files = review(editor).get("callboard.review", {}).get("files", {})
    return files.get(str(editor.workspace / name), {}).get("verdict")


def test_changes_are_listed_and_fill_the_quickfix_list(begin):
    editor = begin("work")
    editor.command("Callboard changes")
    editor.wait_for(re.compile(r"Changes of Tidy up +2 files, 2 new +\+5 −2"))
    editor.wait_for(re.compile(r"new +M app\.txt +\+3 −2"))
    editor.wait_for(re.compile(r"new +A made\.txt +\+2 −0"))
    found = editor.lua("return vim.fn.getqflist({ title = 1, items = 1 })")
    assert found["title"] == "Callboard: changes of Tidy up"
    assert [item["text"] for item in found["items"]] == ["new M +3 −2", "new A +2 −0"]


def test_a_diff_shows_the_text_before_and_accepting_goes_on_to_the_next_file(begin):
    editor = begin("work")
    editor.command("Callboard diff app.txt")
    editor.wait_for("line five")
    editor.wait_for("before")
    left, right = windows(editor)
    assert left == f"callboard://before{editor.workspace}/app.txt"
    assert right == f"{editor.workspace}/app.txt"
    assert editor.buffer("callboard://before") == APP.splitlines()
    assert editor.lua(
        "return vim.tbl_map(function(w) return vim.wo[w].diff end, vim.api.nvim_tabpage_list_wins(0))"
    ) == [True, True]
    editor.keys("ga")
    editor.wait_for(lambda: shows(editor, "made.txt"))
    assert windows(editor)[0] == f"callboard://before{editor.workspace}/made.txt"
    editor.keys("ga")
    editor.wait_for(lambda: len(windows(editor)) == 1)
    editor.wait_for(lambda: "callboard.review" in review(editor))
    editor.command("Callboard changes")
    editor.wait_for(re.compile(r"accepted M app\.txt"))
    editor.wait_for(re.compile(r"accepted A made\.txt"))
    assert text_of(editor, "made.txt") == "one\ntwo\n"


def test_rejecting_puts_the_text_back_as_one_change_that_can_be_undone(begin):
    editor = begin("work")
    changed = text_of(editor, "app.txt")
    editor.command("Callboard diff app.txt")
    editor.wait_for("line five")
    editor.keys("gr")
    editor.wait_for(lambda: text_of(editor, "app.txt") == APP)
    editor.wait_for(lambda: shows(editor, "made.txt"))
    editor.keys("gr")
    editor.wait_for(lambda: not (editor.workspace / "made.txt").exists())
    editor.wait_for(lambda: settled(editor, "app.txt") == "rejected")
    editor.wait_for(lambda: settled(editor, "made.txt") == "rejected")
    editor.command("edit app.txt")
    assert editor.buffer() == APP.splitlines()
    editor.keys("u")
    editor.wait_for(lambda: "\n".join(editor.buffer()) + "\n" == changed)


@pytest.mark.parametrize("close", [":q<CR>", "<C-w>h:q<CR>", "q", ":tabclose<CR>"])
def test_a_diff_that_is_closed_accepts_nothing_and_leaves_no_trace(begin, close):
    editor = begin("work")
    editor.command("edit app.txt")
    editor.command("nnoremap <buffer> gr <Cmd>let g:mine = 1<CR>")
    editor.command("Callboard diff")
    editor.wait_for("before")
    editor.keys(close)
    editor.wait_for("app.txt and 1 file still to be reviewed: :Callboard changes")
    editor.wait_for(lambda: len(windows(editor)) == 1)
    assert said(editor).count("still to be reviewed") == 1
    assert review(editor) == {}
    if close != "<C-w>h:q<CR>":
        assert editor.lua("return #vim.api.nvim_list_tabpages()") == 1
    else:
        editor.command("tabclose")
    editor.command("split app.txt")
    options = "diff scrollbind cursorbind foldmethod winbar".split()
    values = editor.lua("return vim.tbl_map(function(o) return vim.wo[o] end, ...)", options)
    assert values == [False, False, False, "manual", ""]
    assert editor.lua("return vim.fn.maparg('ga', 'n')") == ""
    editor.keys("gr")
    editor.wait_for(lambda: editor.lua("return vim.g.mine") == 1)


def test_an_unsaved_buffer_is_what_is_compared_and_what_is_put_back_is_not_written(begin):
    editor = begin("work")
    changed = text_of(editor, "app.txt")
    editor.command("edit app.txt")
    editor.keys("ggOmine<Esc>")
    editor.command("Callboard diff")
    editor.wait_for("now, unsaved")
    assert editor.buffer("callboard://before") == ["mine", *APP.splitlines()]
    editor.keys("gr")
    editor.wait_for(lambda: "not written" in said(editor))
    assert editor.buffer("app.txt") == ["mine", *APP.splitlines()]
    assert editor.lua("return vim.bo[vim.fn.bufnr('app.txt')].modified") is True
    assert text_of(editor, "app.txt") == changed


def test_a_buffer_with_changes_of_its_own_is_left_alone_when_the_agent_writes_its_file(begin):
    editor = begin()
    editor.command("edit app.txt")
    editor.keys("ggOmine<Esc>")
    work(editor, "work")
    told = "app.txt was changed on disk; its buffer has changes that are not written"
    editor.wait_for(lambda: told in said(editor))
    assert editor.buffer("app.txt") == ["mine", *APP.splitlines()]
    editor.command("Callboard diff")
    editor.wait_for("on disk; your buffer is another, unsaved")
    assert editor.buffer("callboard://before") == APP.splitlines()
    editor.keys("gr")
    editor.wait_for(lambda: text_of(editor, "app.txt") == APP)
    editor.wait_for(lambda: "your buffer has changes of its own and was left alone" in said(editor))
    assert editor.buffer("app.txt") == ["mine", *APP.splitlines()]


def test_a_buffer_takes_in_what_the_agent_wrote_and_others_are_not_looked_at(begin):
    editor = begin()
    editor.command("edit app.txt")
    (editor.workspace / "other.txt").write_text("old\n")
    editor.command("split other.txt")
    (editor.workspace / "other.txt").write_text("newer\n")
    work(editor, "work")
    editor.wait_for("line five")
    assert editor.buffer("other.txt") == ["old"]


def test_a_change_that_somebody_edited_is_put_back_where_it_is_still_found(begin):
    editor = begin("work")
    path = editor.workspace / "app.txt"
    path.write_text(
        path.read_text().replace("line twenty", "line XX").replace("line 1\n", "line 1\nmine\n")
    )
    editor.command("Callboard diff app.txt")
    editor.wait_for(re.compile(r"not taken back: hunk 2 \(lines 18 to 24\)"))
    editor.keys("gr")
    editor.wait_for(
        lambda: (
            path.read_text()
            == APP.replace("line 20", "line XX").replace("line 1\n", "line 1\nmine\n")
        )
    )
    editor.wait_for(lambda: re.search(r"hunk 2 \(lines 18 to 24\) was changed since", said(editor)))


def test_a_made_file_that_was_changed_since_is_not_deleted(begin):
    editor = begin("work")
    made = editor.workspace / "made.txt"
    made.write_text("one\ntwo\nthree\n")
    editor.command("Callboard diff made.txt")
    editor.wait_for("before: no such file")
    editor.keys("gr")
    editor.wait_for(lambda: "it was changed since it was made, so it stays" in said(editor))
    assert made.read_text() == "one\ntwo\nthree\n"
    assert review(editor) == {}


def test_all_of_it_by_command(begin):
    editor = begin("work")
    editor.command("Callboard! reject")
    editor.wait_for("put back 2 files")
    assert text_of(editor, "app.txt") == APP
    assert not (editor.workspace / "made.txt").exists()
    work(editor, "more")
    editor.command("Callboard changes")
    editor.wait_for(re.compile(r"2 files, 1 new"))
    editor.wait_for(re.compile(r"rejected A made\.txt"))
    editor.wait_for(re.compile(r"new +M app\.txt +\+1 −1"))
    editor.keys("gA")
    editor.wait_for("accepted app.txt")
    editor.wait_for(re.compile(r"2 files, 0 new"))


def test_putting_all_back_by_key_asks_first(begin):
    editor = begin("work")
    editor.command("Callboard changes")
    editor.wait_for("made.txt")
    editor.keys("gR")
    editor.wait_for("Put back 2 files? Type yes")
    editor.keys("no<CR>")
    editor.wait_for("nothing was put back")
    assert text_of(editor, "app.txt") != APP
    editor.keys("gR")
    editor.wait_for("Put back 2 files? Type yes")
    editor.keys("yes<CR>")
    editor.wait_for(lambda: text_of(editor, "app.txt") == APP)


def test_what_was_said_is_there_in_another_editor_and_after_a_restart(begin, open_editor):
    first = begin("work")
    id = first.lua("return _G.session")
    first.lua(
        "local app = require('callboard.app').get(); app:change('session/update', { sessionId = _G.session,"
        " metadata = { mine = { 'kept' } } }, 'mark')"
    )
    second = open_editor(store=first.store, workspace=first.workspace)
    second.lua("_G.session = ...; require('callboard.ui.changes').open(_G.session)", id)
    second.wait_for(re.compile(r"2 files, 2 new"))
    first.command("Callboard diff app.txt")
    first.wait_for("before")
    first.keys("ga")
    second.wait_for(re.compile(r"2 files, 1 new"))
    second.wait_for(re.compile(r"accepted M app\.txt"))
    second.command("Callboard! accept")
    first.wait_for(lambda: len(windows(first)) == 1 or "accepted" in first.text())
    first.wait_for(lambda: review(first).get("callboard.review", {}).get("files") == {})
    assert review(first)["mine"] == ["kept"]
    third = open_editor(store=first.store, workspace=first.workspace)
    third.lua("_G.session = ...; require('callboard.ui.changes').open(_G.session)", id)
    third.wait_for(re.compile(r"2 files, 0 new"))


def test_a_diff_that_was_cut_is_shown_as_it_is_and_says_why(begin):
    editor = begin("huge", scenario=HUGE)
    editor.command("Callboard diff app.txt")
    editor.wait_for("Only the diff: its diff is too large and was cut")
    assert editor.lua("return vim.bo.filetype") == "diff"
    assert len(windows(editor)) == 1
    editor.keys("gr")
    editor.wait_for(lambda: "put back nothing. app.txt: its diff was cut" in said(editor))
    assert text_of(editor, "app.txt") != APP
    editor.keys("ga")
    editor.wait_for(lambda: "callboard.review" in review(editor))


def test_a_link_that_leads_out_of_the_session_is_not_followed(begin, tmp_path):
    editor = begin("work")
    outside = tmp_path / "outside.txt"
    path = editor.workspace / "app.txt"
    outside.write_text(path.read_text())
    path.unlink()
    path.symlink_to(outside)
    before = outside.read_text()
    editor.command("Callboard diff app.txt")
    editor.wait_for("before")
    editor.keys("gr")
    editor.wait_for(lambda: "a link leads out of it" in said(editor))
    assert outside.read_text() == before


def test_a_diff_follows_what_the_agent_does_meanwhile(begin):
    editor = begin("work")
    editor.command("Callboard diff app.txt")
    editor.wait_for("before")
    work(editor, "more")
    editor.wait_for(lambda: "line twenty-nine" in editor.buffer("app.txt"))
    editor.wait_for("+4 −3")
    assert editor.buffer("callboard://before") == APP.splitlines()


WAITING = """
return vim.tbl_map(function(a) return a.approvalId end, require('callboard.app').get().approvals.pending)
"""
SHOW = "require('callboard.ui.diff').show_approval(require('callboard.app').get().approvals.pending[1])"


def ask(editor: Editor, prompt: str = "more") -> None:
    """Has the agent come to a change that it must ask for."""
    editor.lua(PROMPT, prompt)
    editor.wait_for(lambda: len(editor.lua(WAITING)) == 1, what="something that waits")


def test_a_change_that_waits_is_shown_before_it_is_made_and_allowed(begin):
    editor = begin(may="ask")
    ask(editor)
    editor.lua(SHOW)
    editor.wait_for("would be")
    left, right = windows(editor)
    assert left == f"{editor.workspace}/app.txt"
    assert right == f"callboard://proposed{editor.workspace}/app.txt"
    assert (
        editor.buffer("callboard://proposed")
        == APP.replace("line 29", "line twenty-nine").splitlines()
    )
    assert text_of(editor, "app.txt") == APP
    editor.wait_gone("to approve")
    editor.keys("ga")
    editor.wait_for(lambda: "line twenty-nine" in text_of(editor, "app.txt"))
    editor.wait_for(lambda: len(windows(editor)) == 1)
    assert "still waits" not in said(editor)


@pytest.mark.parametrize("keys", ["gr", "4", "5because<CR>"])
def test_a_change_that_waits_is_denied(begin, keys):
    editor = begin(may="ask")
    ask(editor)
    editor.lua(SHOW)
    editor.wait_for("would be")
    editor.keys(keys)
    editor.wait_for(lambda: editor.lua("return _G.ended") == 1)
    assert text_of(editor, "app.txt") == APP


def test_a_change_that_waits_goes_on_waiting_when_its_diff_is_closed(begin):
    editor = begin(may="ask")
    ask(editor)
    editor.lua(SHOW)
    editor.wait_for("would be")
    editor.keys(":q<CR>")
    editor.wait_for("still waits for your answer: :Callboard next")
    assert len(editor.lua(WAITING)) == 1
    assert text_of(editor, "app.txt") == APP


def test_a_diff_says_that_it_was_answered_elsewhere_and_its_keys_go(begin, open_editor):
    first = begin(may="ask")
    ask(first)
    first.lua(SHOW)
    first.wait_for("would be")
    second = open_editor(store=first.store, workspace=first.workspace)
    second.lua("require('callboard.app').get().server:start()")
    second.wait_for(lambda: len(second.lua(WAITING)) == 1)
    second.lua(
        "local app = require('callboard.app').get(); local a = app.approvals.pending[1];"
        "app:answer(a, require('callboard.model.approvals').option(a, 4))"
    )
    first.wait_for(re.compile(r"denied|rejected"))
    assert first.lua("return vim.fn.maparg('ga', 'n')") == ""
    assert (
        first.lua("return vim.fn.maparg('q', 'n', false, true).desc") == "Callboard: Close the diff"
    )
    first.keys("q")
    first.wait_for(lambda: len(windows(first)) == 1)


def test_a_change_that_does_not_fit_an_unsaved_buffer_is_shown_as_a_diff(begin):
    editor = begin(may="ask")
    editor.command("edit app.txt")
    editor.keys("28GSmine<Esc>")
    ask(editor)
    editor.lua(SHOW)
    editor.wait_for(re.compile(r"hunk 1 \(lines 26 to 30\) does not fit your unsaved buffer"))
    assert "+line twenty-nine" in editor.buffer()
    editor.keys("4")
    editor.wait_for(lambda: editor.lua("return _G.ended") == 1)


def test_a_change_that_waits_opens_by_itself_where_that_is_wished(begin):
    editor = begin(may="ask", chat=True, options={"diff": {"auto_open": True}})
    ask(editor)
    editor.wait_for("would be")


def test_nothing_opens_while_somebody_types(begin):
    editor = begin(may="ask", chat=True, options={"diff": {"auto_open": True}})
    editor.keys("ityping")
    editor.wait_for("typing")
    ask(editor)
    editor.keys(" on<Esc>")
    editor.wait_for("would be")
    editor.keys("q")
    editor.wait_for("typing on")


def test_nothing_opens_where_the_chat_is_not_in_view(begin):
    editor = begin(may="ask", options={"diff": {"auto_open": True}})
    ask(editor)
    editor.wait_for(re.compile(r"1 to approve"))
    assert len(windows(editor)) == 1


def test_from_the_chat_to_what_a_call_changed_and_to_what_one_would_change(begin):
    editor = begin("work", chat=True)
    editor.wait_for("── done")  # drawn, and not only ended
    editor.wait_for("Edit app.txt")
    editor.keys("<C-w>l/app.txt<CR>gd")
    editor.wait_for("before")
    assert windows(editor)[1].endswith("/app.txt")
    editor.keys("q")
    editor.wait_gone("before")


def test_a_diff_in_a_split_gives_the_window_back(begin):
    editor = begin("work", options={"diff": {"layout": "split"}})
    editor.command("edit app.txt")
    editor.command("Callboard diff")
    editor.wait_for("before")
    assert len(windows(editor)) == 2
    assert editor.lua("return #vim.api.nvim_list_tabpages()") == 1
    editor.keys("q")
    editor.wait_for(lambda: len(windows(editor)) == 1)
    assert editor.lua("return { vim.wo.diff, vim.wo.winbar }") == [False, ""]


def test_closing_a_diff_goes_back_to_where_one_was(begin):
    editor = begin("work")
    editor.command("edit app.txt")
    editor.command("tab split | tabprevious")
    for close in ("q", ":q<CR>"):
        editor.command("Callboard diff")
        editor.wait_for("before")
        assert editor.lua("return vim.fn.tabpagenr()") == 2
        editor.keys(close)
        editor.wait_for(
            lambda: editor.lua("return { vim.fn.tabpagenr('$'), vim.fn.tabpagenr() }") == [2, 1]
        )


def test_something_else_opened_in_a_diff_ends_it(begin):
    editor = begin("work")
    editor.command("Callboard diff app.txt")
    editor.wait_for("before")
    editor.command("edit made.txt")
    editor.wait_for(lambda: windows(editor) == [f"{editor.workspace}/made.txt"])
    assert editor.lua("return { vim.wo.diff, vim.wo.winbar, vim.fn.maparg('ga', 'n') }") == [
        False,
        "",
        "",
    ]
    assert review(editor) == {}


def test_a_plugin_that_writes_everything_accepts_nothing(begin):
    editor = begin("work", may="allow")
    editor.command("autocmd TextChanged,InsertLeave,WinLeave,BufLeave * silent! wall")
    editor.command("Callboard diff app.txt")
    editor.wait_for("before")
    editor.keys("ggOmine<Esc><C-w>h<C-w>l")
    editor.wait_for(lambda: text_of(editor, "app.txt").startswith("mine\n"))
    editor.command("wall")
    assert review(editor) == {}
    editor.keys("gr")
    editor.wait_for(lambda: text_of(editor, "app.txt") == "mine\n" + APP)


def test_a_plugin_that_writes_everything_allows_nothing(begin):
    editor = begin(may="ask")
    editor.command("autocmd TextChanged,InsertLeave,WinLeave,BufLeave * silent! wall")
    ask(editor)
    editor.lua(SHOW)
    editor.wait_for("would be")
    editor.command("wall")
    editor.keys("<C-w>h<C-w>l:q<CR>")
    editor.wait_for(lambda: "still waits for your answer" in said(editor))
    assert len(editor.lua(WAITING)) == 1
    assert text_of(editor, "app.txt") == APP


def test_mappings_that_a_language_server_brings_late_give_way_and_stay(begin):
    editor = begin("work")
    editor.command("Callboard diff app.txt")
    editor.wait_for("before")
    editor.command("nnoremap <buffer> gr <Cmd>let g:theirs = 1<CR>")
    editor.lua("vim.api.nvim_exec_autocmds('LspAttach', { data = { client_id = 1 }, buffer = 0 })")
    # Ours comes back behind all that other plugins map when the server attaches, so not at once.
    editor.wait_for(lambda: editor.lua("return vim.fn.maparg('gr', 'n'):find('theirs') == nil"))
    editor.keys("gr")
    editor.wait_for(lambda: text_of(editor, "app.txt") == APP)
    editor.command("Callboard! accept")
    editor.command("edit app.txt")
    editor.keys("gr")
    editor.wait_for(lambda: editor.lua("return vim.g.theirs") == 1)


def test_after_a_session_file_was_read_diffs_and_lists_open_again(begin, open_editor):
    first = begin("work")
    first.command("Callboard changes")
    first.wait_for("made.txt")
    first.command("Callboard diff app.txt")
    first.wait_for("before")
    saved = first.folder / "Session.vim"
    first.command(f"mksession {saved}")
    id = first.lua("return _G.session")
    second = open_editor(store=first.store, workspace=first.workspace, arguments=["-S", saved])
    second.lua("require('callboard.ui.changes').open(...)", id)
    second.wait_for(re.compile(r"2 files, 2 new"))
    second.keys("gg/app.txt<CR>gd")
    second.wait_for("ga accept")
    assert "E95" not in second.messages()
    assert second.buffer()[4:6] == ["line five", "line 5b"]
    second.keys("ga")
    second.wait_for("made.txt")


def test_what_an_agent_below_wrote_is_taken_in_and_listed(begin):
    editor = begin(scenario=TEAM)
    editor.command("edit app.txt")
    work(editor, "delegate")
    editor.wait_for("line five")
    editor.command("Callboard changes")
    editor.wait_for(re.compile(r"new +M app\.txt +\+1 −1 +by scout"))
    editor.keys("gr")
    editor.wait_for(lambda: text_of(editor, "app.txt") == APP)
    editor.wait_for(re.compile(r"rejected M app\.txt"))


def test_a_list_that_nobody_sees_follows_nothing(begin):
    editor = begin("work")
    editor.command("Callboard changes")
    editor.wait_for("made.txt")
    editor.keys(":q<CR>")
    editor.wait_for(lambda: editor.lua("return vim.fn.bufnr('callboard://changes')") == -1)


def test_a_file_with_a_swap_file_of_a_crash_asks_nothing(begin, open_editor, tmp_path):
    editor = begin("work")
    swaps = tmp_path / "swaps"
    swaps.mkdir()
    with_swaps = f"set updatecount=200 swapfile directory={swaps}//"
    crashed = open_editor(workspace=editor.workspace)
    crashed.command(with_swaps)
    crashed.command("edit app.txt")
    crashed.keys("itext<Esc>:preserve<CR>")
    crashed.wait_for("File preserved")
    crashed.kill()
    assert len(list(swaps.iterdir())) == 1
    editor.command(with_swaps)
    editor.command("Callboard diff app.txt")
    editor.wait_for("ga accept")
    editor.wait_for(lambda: "app.txt has a swap file" in said(editor))
    assert editor.lua("return vim.bo.readonly") is True
    editor.keys("gr")
    editor.wait_for(lambda: "it was not written: it is read-only" in said(editor))
