"""Neovim and its server as processes: killed, missing, wrong, babbling, crashing; and nothing is lost, doubled or
left running."""

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from asking import answer, begin
from driven import TOLD, Driven, said
from nvim_harness import SERVER, Editor

from harness.process import ServerProcess
from harness.processes import ended

SCENARIO = r"""
rules:
  - when: {last_user: {regex: "^hang"}}
    answer: [{say: {text: "I begin. ", chunk: 4}}, {hang: true}]
  - when: {last_user: {regex: "^count"}}
    answer: [{say: {text: "one two three four five six seven eight nine ten ", repeat: 40, chunk: 10, delay_ms: 5}}]
  - when: {last_user: {regex: "^run (.+)$"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "{{match.1}}"}}}]
  - when: {last_tool: {contains: ""}}
    answer: [{say: "Done."}]
default: [{say: "You said {{last_user}}."}]
"""
FAST = "require('callboard.rpc.supervisor').BACK_OFF_MS = { 20, 20, 20, 20 }"
"""The pauses between starts are for people; here only their number counts."""
SERVER_STATE = "return require('callboard.app').get().server.state"
FAILURE = "return require('callboard.app').get().server.failure"

Opener = Callable[..., Editor]


@pytest.fixture
def edit(open_editor: Opener) -> Opener:
    """Editors in which messages are kept."""

    def start(**settings: Any) -> Editor:
        settings.setdefault("scenario", SCENARIO)
        return open_editor(**{**settings, "init": TOLD + settings.get("init", "")})

    return start


def allowing(folder: Path) -> None:
    """Commands run without being asked about."""
    config = folder / "home" / "config" / "callboard"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text('[approvals.policy]\nexecute = "allow"\n')


def program(folder: Path, text: str) -> tuple[str, ...]:
    """A server's command that runs a script."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "server.py"
    script.write_text(text)
    return (sys.executable, str(script), "serve")


def kinds(seen: dict[str, Any]) -> list[str]:
    return [item["kind"] for item in seen["items"]]


def texts(seen: dict[str, Any], kind: str) -> list[str]:
    return [item["text"] for item in seen["items"] if item["kind"] == kind]


def begun(text: str) -> Callable[[dict[str, Any]], bool]:
    """Whether an answer has come so far."""
    return lambda seen: any(text in each for each in texts(seen, "answer"))


def streams(seen: dict[str, Any]) -> bool:
    return any(item.get("streaming") for item in seen["items"])


# --- servers that die ---------------------------------------------------------------------------------


def draft_is_saved(editor) -> bool:
    """Whether what streams is in the store: the server itself tells of more than that."""
    with closing(sqlite3.connect(f"file:{editor.store}?mode=ro", uri=True)) as store:
        return store.execute("SELECT count(*) FROM drafts").fetchone()[0] > 0


def test_a_server_that_is_killed_in_mid_turn_comes_back_by_itself(edit):
    editor = edit()
    editor.lua(FAST)
    session = Driven(editor)
    session.prompt("hang")
    session.until(begun("I begin."))
    editor.wait_for(lambda: draft_is_saved(editor), what="a saved draft")
    (before,) = editor.server_pids()
    editor.kill_server()
    seen = session.rests()
    (after,) = editor.server_pids()
    assert before != after
    assert [item["outcome"] for item in seen["items"] if item["kind"] == "turn"] == ["interrupted"]
    assert texts(seen, "prompt") == ["hang"]
    assert len(texts(seen, "answer")) == 1
    (cut,) = [item for item in seen["items"] if item["kind"] == "answer"]
    assert cut["partial"] and not cut.get("streaming")
    assert cut["text"].startswith("I be")  # so much of it was saved
    session.agrees()
    session.prompt("still there?")
    seen = session.until(begun("You said still there?."))
    assert texts(seen, "prompt") == ["hang", "still there?"]
    assert said(editor) == ["Callboard: the server is back; everything goes on where it was"]


def test_a_prompt_that_was_under_way_when_the_server_died_is_there_once(edit):
    """Sent to a server that stands still and is killed then: it never answers, and the next one is asked again."""
    editor = edit()
    editor.lua(FAST)
    session = Driven(editor)
    (pid,) = editor.server_pids()
    os.kill(pid, signal.SIGSTOP)
    session.prompt("one")
    session.prompt("two")
    assert session.seen()["sending"] == 2
    editor.kill_server()
    seen = session.until(begun("You said two."))
    seen = session.rests()
    assert texts(seen, "prompt") == ["one", "two"]
    assert texts(seen, "answer") == ["You said one.", "You said two."]
    session.agrees()


def test_a_prompt_that_was_accepted_and_not_answered_is_there_once(edit):
    """The log has it already when the next server is asked with the same key."""
    editor = edit()
    editor.lua(FAST)
    session = Driven(editor)
    # The answer is lost: the server dies after it has written, and before the editor has read.
    editor.lua(
        "local client = require('callboard.app').get().server.client"
        " client.read = function() end _G.deaf = client"
    )
    session.prompt("one")
    with ServerProcess_of(editor) as other:
        subscribed = other.call(
            "event/subscribe", scope={"kind": "session", "id": session.id}, **{"from": "start"}
        )
        assert subscribed
        other.told(lambda event: event["type"] == "turn_finished")
    assert session.seen()["sending"] == 1
    editor.kill_server()
    seen = session.rests()
    assert texts(seen, "prompt") == ["one"]
    assert texts(seen, "answer") == ["You said one."]
    session.agrees()


def test_servers_that_are_killed_again_and_again_lose_and_double_nothing(edit):
    editor = edit()
    editor.lua(FAST + " require('callboard.rpc.supervisor').DEATHS = 100")
    session = Driven(editor)
    for number in range(4):
        session.prompt(f"count {number}")
        session.until(streams)
        editor.kill_server()
        seen = session.rests()
        assert len(texts(seen, "prompt")) == number + 1
        session.agrees()
    outcomes = [item["outcome"] for item in session.seen()["items"] if item["kind"] == "turn"]
    assert len(outcomes) == 4


def test_a_server_that_is_restarted_by_hand_is_another_one(edit):
    editor = edit()
    session = Driven(editor)
    (before,) = editor.server_pids()
    editor.command("Callboard restart")
    editor.wait_for(lambda: editor.server_pids() not in ([], [before]))
    session.prompt("hello")
    session.until(begun("You said hello."))
    assert session.seen()["phase"] == "live"


# --- servers that cannot be had -----------------------------------------------------------------------


CRASHING = """
import os, sys
if os.path.exists({flag!r}):
    os.execv({server!r}, [{server!r}, "serve"])
for number in range(1, 31):
    print(f"complaint {{number}}", file=sys.stderr)
sys.exit(3)
"""


def test_a_server_that_crashes_again_and_again_is_given_up_with_its_last_words(edit, tmp_path):
    flag = tmp_path / "mended"
    command = program(tmp_path / "crashing", CRASHING.format(flag=str(flag), server=SERVER[0]))
    editor = edit(server=command)
    editor.lua(FAST)
    editor.command("Callboard new")
    editor.wait_for(lambda: editor.lua(SERVER_STATE) == "failed")
    editor.wait_for("complaint 30")
    (message,) = editor.wait_for(lambda: said(editor))
    for words in ("ended with code 3", "5 times in a row", ":Callboard restart", "complaint 30"):
        assert words in message
    assert "complaint 1\n" not in message
    failure = editor.lua(FAILURE)
    assert failure["lines"] == [f"complaint {number}" for number in range(11, 31)]
    editor.wait_for(":Callboard restart")
    assert editor.server_pids() == []
    flag.touch()
    editor.command("Callboard restart")
    editor.wait_for(lambda: editor.lua(SERVER_STATE) == "ready")
    editor.wait_gone("complaint 30")
    Driven(editor).prompt("hello")
    assert len(said(editor)) == 1


def test_a_server_that_is_not_there_is_told_once_with_the_way_out(edit):
    editor = edit(server=("/no/such/callboard", "serve"))
    editor.command("Callboard new")
    editor.wait_for("/no/such/callboard")
    (message,) = editor.wait_for(lambda: said(editor))
    assert "/no/such/callboard" in message
    assert "Correct the option" in message
    editor.keys("itext that stays<Esc>")
    editor.wait_for("text that stays")
    editor.lua("require('callboard.config').setup({ server = { cmd = ... } })", list(SERVER))
    editor.command("Callboard restart")
    editor.wait_for(lambda: editor.lua(SERVER_STATE) == "ready")
    editor.wait_gone("/no/such/callboard")


def test_without_any_server_the_message_says_where_was_looked(edit, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    editor = edit(server=None, init=f"vim.env.PATH = '{empty}'")
    editor.command("Callboard new")
    (message,) = editor.wait_for(lambda: said(editor))
    for words in ("was not found", str(editor.workspace), "PATH", "pip install callboard"):
        assert words in message
    assert editor.lua("return vim.v.errmsg") == ""


def test_a_python_without_callboard_is_no_server(edit, tmp_path):
    """A guess that fails is told as what it is: nothing was found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    editor = edit(server=None, init=f"vim.env.PATH = '{folder}:/bin'")
    editor.command("Callboard new")
    (message,) = editor.wait_for(lambda: said(editor))
    assert "was not found" in message
    assert "pip install callboard" in message
    assert editor.server_pids() == []


REFUSING = """
import json, sys
def read():
    length = 0
    while (line := sys.stdin.buffer.readline().strip()):
        length = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(length)) if length else None
while message := read():
    if message["method"] == "exit":
        break
    answer = {{"jsonrpc": "2.0", "id": message["id"]}}
    if message["method"] == "initialize":
        answer["error"] = {error!r}
    else:
        answer["result"] = None
    body = json.dumps(answer).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
    sys.stdout.buffer.flush()
"""


def test_a_server_of_another_version_is_told_with_both_ways_to_update(edit, tmp_path):
    error = {
        "code": -31001,
        "message": "this server speaks 9.0, the client 1.0",
        "data": {"kind": "unsupportedVersion", "retryable": False},
    }
    editor = edit(server=program(tmp_path / "other", REFUSING.format(error=error)))
    editor.command("Callboard new")
    (message,) = editor.wait_for(lambda: said(editor))
    for words in ("this server speaks 9.0", "Update both", "callboard editor path nvim"):
        assert words in message
    assert editor.lua(SERVER_STATE) == "failed"
    editor.wait_for(lambda: editor.server_pids() == [])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("print('Welcome!', flush=True)\n", "Welcome!"),
        ("print('\\x1b[31mred\\x1b[0m', flush=True)\n", "<1B>[31mred<1B>[0m"),
        ("import sys; sys.stdout.buffer.write(bytes(range(256))); sys.stdout.flush()\n", "<00>"),
        ("print('Content-Length: 5\\n\\nhello', flush=True)\n", "hello"),
    ],
)
def test_a_program_that_prints_something_else_is_ended_and_told(edit, tmp_path, text, shown):
    waits = "import time\ntime.sleep(600)\n"
    editor = edit(server=program(tmp_path / "babbling", text + waits))
    editor.command("Callboard new")
    (message,) = editor.wait_for(lambda: said(editor))
    assert "is no Callboard server" in message
    assert shown in message
    assert "Set server.cmd" in message
    assert editor.lua(SERVER_STATE) == "failed"
    assert editor.server_pids() == []


BABBLING_LATER = """
import subprocess, sys, threading
child = subprocess.Popen([{server!r}, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def pump(source, sink):
    while chunk := source.read1(65536):
        if b"say garbage" in chunk:
            sys.stdout.buffer.write(b"debug: a line that somebody left here\\n\\n")
            sys.stdout.buffer.flush()
        sink.write(chunk)
        sink.flush()
    sink.close()
threading.Thread(target=pump, args=(sys.stdin.buffer, child.stdin), daemon=True).start()
pump(child.stdout, sys.stdout.buffer)
"""


def test_garbage_between_frames_is_told_and_what_was_shown_stays(edit, tmp_path):
    editor = edit(server=program(tmp_path / "later", BABBLING_LATER.format(server=SERVER[0])))
    session = Driven(editor)
    session.prompt("hello")
    session.until(begun("You said hello."))
    session.rests()
    session.begin("session/search", query="say garbage")
    (message,) = editor.wait_for(lambda: said(editor))
    assert "a line that somebody left here" in message
    assert texts(session.seen(), "answer") == ["You said hello."]
    editor.wait_for(lambda: editor.server_pids() == [])


# --- stores -------------------------------------------------------------------------------------------


def made(editor: Editor) -> None:
    """The store is there, and nobody has it."""
    Driven(editor)
    editor.close()


def test_a_store_of_a_newer_callboard_is_told_once(edit):
    first = edit()
    made(first)
    with sqlite3.connect(first.store) as connection:
        connection.execute("PRAGMA user_version = 9999")
    connection.close()
    editor = edit(store=first.store)
    editor.command("Callboard new")
    (message,) = editor.wait_for(lambda: said(editor))
    for words in ("made by a newer Callboard", "upgrade Callboard", ":Callboard restart"):
        assert words in message
    assert editor.lua(SERVER_STATE) == "failed"
    editor.wait_for("made by a newer Callboard")
    editor.keys("istill an editor<Esc>")
    editor.wait_for("still an editor")


def test_a_store_that_is_locked_is_told_and_tried_again(edit):
    first = edit()
    made(first)
    locking = sqlite3.connect(first.store, isolation_level=None)
    try:
        locking.execute("PRAGMA locking_mode = exclusive")
        locking.execute("BEGIN EXCLUSIVE")
        locking.execute("CREATE TABLE in_the_way (x)")
        editor = edit(store=first.store)
        editor.lua(FAST)
        editor.command("Callboard new")
        (message,) = editor.wait_for(lambda: said(editor), deadline=60)
        assert "is busy; try again" in message
        assert "tried again" in message
    finally:
        locking.execute("ROLLBACK")
        locking.close()
    editor.wait_for(lambda: editor.lua(SERVER_STATE) == "ready", deadline=60)
    assert len(said(editor)) == 1


def ServerProcess_of(editor: Editor, **more: Any) -> ServerProcess:
    """Another client, with a server of its own, on the store of an editor."""
    environ = {"CALLBOARD_STORE": str(editor.store)}
    folder = editor.folder / "other"
    folder.mkdir(exist_ok=True)
    return ServerProcess(folder, model=editor.environ["CALLBOARD_MODEL"], environ=environ, **more)


def test_a_session_that_somebody_deletes_is_lost_with_a_word(edit):
    editor = edit()
    session = Driven(editor)
    session.prompt("hello")
    session.rests()
    editor.lua("require('callboard.ui.chat').open(...)", session.id)
    editor.wait_for("You said hello.")
    with ServerProcess_of(editor) as other:
        other.call("session/delete", sessionId=session.id)
    seen = session.until(lambda seen: seen["phase"] == "lost")
    assert "was deleted" in seen["fault"]
    assert ":Callboard sessions" in seen["fault"]
    editor.wait_for("was deleted")
    editor.wait_for(
        lambda: (
            not editor.lua("return require('callboard.app').get().sessions.by_id[...]", session.id)
        )
    )
    session.prompt("anybody?")
    refused = editor.wait_for(lambda: editor.lua("return _G.prompted"))
    assert refused["err"]["data"]["kind"] == "sessionNotFound"
    assert session.seen()["sending"] == 0
    editor.command("enew")
    editor.keys("ithe rest is unharmed<Esc>")
    editor.wait_for("the rest is unharmed")


# --- the end of Neovim --------------------------------------------------------------------------------


def sleepers(editor: Editor) -> list[psutil.Process]:
    return [p for p in editor.children() if "sleep" in p.name()]


@pytest.mark.parametrize("ending", ["quit", "kill"])
def test_nothing_is_left_of_an_idle_editor(edit, ending):
    editor = edit()
    Driven(editor)
    assert editor.server_pids()
    if ending == "kill":
        editor.kill()
    editor.close()


@pytest.mark.parametrize("ending", ["quit", "kill"])
def test_nothing_is_left_of_a_turn_that_runs(edit, ending):
    editor = edit()
    session = Driven(editor)
    session.prompt("hang")
    session.until(begun("I begin."))
    if ending == "kill":
        editor.kill()
    editor.close()
    again = edit(store=editor.store)
    seen = Driven(again, session.id).rests()
    assert [i["outcome"] for i in seen["items"] if i["kind"] == "turn"] == ["interrupted"]
    assert len(texts(seen, "prompt")) == 1


@pytest.mark.parametrize("ending", ["quit", "kill"])
def test_nothing_is_left_of_a_command_that_runs(edit, tmp_path, ending):
    folder = tmp_path / "runs"
    allowing(folder)
    editor = edit(folder=folder)
    session = Driven(editor)
    session.prompt("run sleep 600")
    (sleeper,) = editor.wait_for(lambda: sleepers(editor))
    if ending == "kill":
        editor.kill()
    editor.close()
    assert ended(sleeper)


def test_nothing_is_left_of_a_server_that_was_starting(edit):
    editor = edit()
    editor.lua("require('callboard.app').get()")
    editor.close()


def test_nothing_is_left_of_a_server_that_does_not_go(edit, tmp_path):
    stubborn = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n"
    )
    editor = edit(server=program(tmp_path / "stubborn", stubborn))
    editor.lua("require('callboard.app').get()")
    editor.wait_for(lambda: len(editor.children()) == 1)
    editor.close()


# --- two editors --------------------------------------------------------------------------------------


def test_two_editors_answer_one_approval_and_one_of_them_has_won(edit):
    one = edit()
    two = edit(store=one.store)
    session = Driven(one)
    Driven(two, session.id)
    session.prompt("run echo hello")
    seen = "_G.asked = require('callboard.app').get().approvals.pending[1] return _G.asked"
    for editor in (one, two):
        editor.wait_for(lambda editor=editor: editor.lua(seen))
    answering = """
    local app = require('callboard.app').get()
    app:answer(_G.asked, _G.asked.options[1], nil, function(err) _G.came = err or 'answered' end)
    """
    for editor in (one, two):
        editor.lua(answering)
    came = [
        editor.wait_for(lambda editor=editor: editor.lua("return _G.came")) for editor in (one, two)
    ]
    (lost,) = [each for each in came if each != "answered"]
    assert lost["data"]["kind"] == "alreadyResolved"
    assert lost["data"]["resolution"]["outcome"] == "allowed"
    loser = (one, two)[came.index(lost)]
    winner = (one, two)[1 - came.index(lost)]
    assert editor_told(loser) == ["Callboard: echo hello was allowed by Neovim already"]
    assert said(winner) == []
    for editor in (one, two):
        editor.wait_for(
            lambda editor=editor: (
                not editor.lua("return require('callboard.app').get().approvals.pending[1]")
            )
        )
    seen = session.rests()
    assert [i["status"] for i in seen["items"] if i["kind"] == "tool"] == ["ok"]
    session.agrees()


def editor_told(editor: Editor) -> list[str]:
    return editor.wait_for(lambda: said(editor))


def test_an_approval_survives_the_server_of_the_editor_that_asked(edit):
    one = edit()
    one.lua(FAST)
    session = Driven(one)
    session.prompt("run echo hello")
    pending = "return #require('callboard.app').get().approvals.pending"
    one.wait_for(lambda: one.lua(pending) == 1)
    one.kill_server()
    one.wait_for(lambda: one.lua(SERVER_STATE) == "ready")
    session.until(lambda seen: seen.get("turn") and seen["turn"]["state"] == "parked")
    one.wait_for(lambda: one.lua(pending) == 1)
    one.lua(
        "local app = require('callboard.app').get() local approval = app.approvals.pending[1]"
        " app:answer(approval, approval.options[1])"
    )
    seen = session.rests()
    assert [i["status"] for i in seen["items"] if i["kind"] == "tool"] == ["ok"]
    session.agrees()


# --- rest ---------------------------------------------------------------------------------------------


COUNTED = """
_G.timers = {}
local new_timer = vim.uv.new_timer
vim.uv.new_timer = function()
  local timer = new_timer()
  table.insert(_G.timers, timer)
  return timer
end
"""
RUNNING = """
return #vim.tbl_filter(function(timer)
  return not timer:is_closing() and timer:is_active()
end, _G.timers)
"""


def test_an_idle_editor_has_no_timer(edit):
    editor = edit(init=COUNTED)
    session = Driven(editor)
    editor.lua("require('callboard.ui.chat').open(...)", session.id)
    session.prompt("hello")
    editor.wait_for("You said hello.")
    session.rests()
    assert editor.lua("return #_G.timers") > 0
    editor.wait_for(lambda: editor.lua(RUNNING) == 0, what="no timer of ours")
    editor.command("Callboard restart")
    editor.wait_for(lambda: len(editor.server_pids()) == 1)
    editor.wait_for(lambda: editor.lua(SERVER_STATE) == "ready")
    editor.wait_for(lambda: editor.lua(RUNNING) == 0, what="no timer of ours after a restart")


def test_a_request_is_answered_while_another_one_waits(edit):
    """`session/wait` may take its time: nothing stands behind it."""
    editor = edit()
    session = Driven(editor)
    session.prompt("hang")
    session.until(begun("I begin."))
    waiting = session.begin("session/wait", sessionId=session.id, until="idle", timeoutMs=60_000)
    assert session.ask("server/ping")
    session.ask("session/cancel", sessionId=session.id)
    assert session.answer(waiting)["result"]["reason"] == "idle"
    assert answer(editor, begin(editor, "server/ping"))["result"]
