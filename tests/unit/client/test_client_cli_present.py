import io
from typing import Any

import pytest
from rich.console import Console

from callboard.cli.present import Presenter
from callboard_client import Delta
from callboard_rpc.common import MessageId, SessionId, TurnId
from callboard_rpc.convert import structure_lenient
from callboard_rpc.events import Event

ROOT = SessionId("ses_1")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\r\x9b1m"


class Screen:
    def __init__(self, *, details: bool = False, terminal: bool = False) -> None:
        self.out = io.StringIO()
        console = Console(
            file=self.out,
            width=80,
            force_terminal=terminal,
            highlight=False,
            markup=False,
            emoji=False,
        )
        self.presenter = Presenter(console=console, root=ROOT, details=details)
        self.seq = 0

    def event(self, type_: str, session: str = ROOT, /, **data: Any) -> None:
        self.seq += 1
        wire = {
            "pos": self.seq,
            "sessionId": session,
            "seq": self.seq,
            "eventId": f"evt_{self.seq}",
            "type": type_,
            "at": "2026-01-01T00:00:00Z",
            "actor": {"kind": "agent", "id": "a"},
            "turnId": "trn_1",
            "data": data,
        }
        self.presenter.show(structure_lenient(wire, Event))

    def delta(self, text: str, kind: Any = "answer", index: int = 0, *, hole: bool = False) -> None:
        self.presenter.show(
            Delta(
                session_id=ROOT,
                turn_id=TurnId("trn_1"),
                message_id=MessageId("msg_1"),
                kind=kind,
                index=index,
                text=text,
                hole=hole,
            )
        )

    def answer(self, text: str, session: str = ROOT) -> None:
        self.event(
            "message",
            session,
            messageId="msg_1",
            author={"kind": "agent", "name": "worker"},
            content=[{"type": "text", "text": text}],
        )

    def call(self, title: str = "Edit a.py", kind: str = "edit", session: str = ROOT) -> None:
        self.event(
            "tool_call",
            session,
            callId="call_1",
            messageId="msg_1",
            name="edit_file",
            arguments={},
            title=title,
            kind=kind,
        )

    def result(self, status: str = "ok", text: str = "", session: str = ROOT, **more: Any) -> None:
        self.event(
            "tool_result",
            session,
            callId="call_1",
            name="edit_file",
            status=status,
            text=text,
            **more,
        )

    @property
    def text(self) -> str:
        self.presenter.settle()
        return self.out.getvalue()


CHANGE = {
    "path": "a.py",
    "operation": "modify",
    "diff": "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-old\n+new\n",
    "added": 1,
    "removed": 1,
}


def test_an_answer_that_streamed_whole_is_shown_once() -> None:
    screen = Screen()
    for index, piece in enumerate(["Hel", "lo ", "there"]):
        screen.delta(piece, index=index)
    screen.answer("Hello there")
    assert screen.text == "Hello there\n"


def test_what_did_not_stream_is_added_at_the_end() -> None:
    screen = Screen()
    screen.delta("Hello")
    screen.answer("Hello there")
    assert screen.text == "Hello there\n"


def test_an_answer_with_a_hole_is_shown_again_as_a_whole() -> None:
    screen = Screen()
    screen.delta("lo there", index=3, hole=True)
    screen.answer("Hello there")
    assert screen.text == "…lo there\nHello there\n"


def test_an_answer_without_deltas_is_shown() -> None:
    screen = Screen()
    screen.answer("Hello there")
    assert screen.text == "Hello there\n"


def test_a_thought_does_not_run_into_the_answer() -> None:
    screen = Screen()
    screen.delta("hmm", "thought")
    screen.delta("\nYes.", "answer")
    screen.answer("\nYes.")
    assert screen.text == "hmm\nYes.\n"


def test_a_tool_call_is_one_line_with_status_and_duration() -> None:
    screen = Screen()
    screen.call("Read a.py", "read")
    screen.result(durationMs=12)
    assert screen.text == "✓ Read a.py  12 ms\n"


def test_a_refused_call_says_why() -> None:
    screen = Screen()
    screen.call("Read a.py", "read")
    screen.result("denied", "use the\nother file")
    assert screen.text == "⊘ Read a.py  denied\n    use the other file\n"


def test_a_change_shows_its_diff_unless_the_question_did() -> None:
    screen = Screen()
    screen.call()
    screen.result(changes=[CHANGE])
    assert "    -old\n    +new" in screen.text
    again = Screen()
    again.presenter.note_diff("call_1")
    again.call()
    again.result(changes=[CHANGE])
    assert again.text == "✓ Edit a.py  +1 -1\n"


def test_a_command_shows_the_end_of_its_output() -> None:
    screen = Screen()
    screen.call("Run make", "execute")
    screen.result(text="\n".join(f"line {n}" for n in range(100)), exitCode=2)
    lines = screen.text.splitlines()
    assert lines[0] == "✓ Run make  exit 2"
    assert lines[1].strip() == "… 92 lines above"
    assert [each.strip() for each in lines[2:]] == [f"line {n}" for n in range(92, 100)]


def test_what_children_do_is_set_off_and_their_text_names_them() -> None:
    screen = Screen()
    screen.call("Read a.py", "read", session="ses_2")
    screen.result(session="ses_2")
    screen.answer("found it", session="ses_2")
    assert screen.text == "  ✓ Read a.py\n  worker: found it\n"


def test_the_own_prompt_is_not_repeated_but_that_of_others_is() -> None:
    screen = Screen()
    screen.presenter.hidden_seq = 1
    for text in ("mine", "theirs"):
        screen.event(
            "message",
            messageId="m",
            author={"kind": "person", "name": "p"},
            content=[{"type": "text", "text": text}],
        )
    assert screen.text == "› theirs\n"


def test_an_error_is_told_once() -> None:
    failure = {"kind": "modelError", "message": "the model is gone"}
    screen = Screen()
    screen.event("error", error=failure)
    screen.event(
        "turn_finished",
        turnId="trn_1",
        outcome="failed",
        answeredThrough=1,
        usage={},
        error=failure,
    )
    assert screen.text.count("the model is gone") == 1


def test_hostile_text_reaches_no_terminal_by_any_event() -> None:
    screen = Screen(details=True)
    screen.delta(HOSTILE, "thought")
    screen.delta(HOSTILE)
    screen.answer(HOSTILE + "more")
    screen.call(HOSTILE, "execute")
    screen.result("error", HOSTILE)
    screen.call(HOSTILE)
    screen.result(changes=[{**CHANGE, "path": HOSTILE, "diff": f"+{HOSTILE}\n"}])
    screen.answer(HOSTILE, session="ses_2")
    screen.event("error", error={"kind": "x", "message": HOSTILE})
    screen.event("directive", messageId="m", author={"kind": "peer", "name": HOSTILE}, text=HOSTILE)
    screen.event("plan_updated", entries=[{"content": HOSTILE, "status": HOSTILE}])
    screen.event("model_retried", attempt=1, delayMs=5, error={"kind": "x", "message": HOSTILE})
    screen.event(
        "turn_started", turnId="t", index=0, trigger={"kind": "prompt"}, model=HOSTILE, mode=HOSTILE
    )
    screen.event("triggers_dropped", seqs=[1], reason=HOSTILE)
    screen.event("[bold]of the future" + HOSTILE)
    for char in "\x1b\x9b\x07\r\u202e":
        assert char not in screen.text
    assert "owned" not in screen.text
    assert "evil" in screen.text


def test_markup_in_text_of_others_is_only_text() -> None:
    screen = Screen()
    screen.answer("[red]x[/red] :smile: [link=http://a]y[/link]")
    screen.call("[bold]t[/bold]", "read")
    screen.result("error", "[blink]z[/blink]")
    assert "[red]x[/red] :smile: [link=http://a]y[/link]\n" in screen.text
    assert "✗ [bold]t[/bold]  error\n    [blink]z[/blink]\n" in screen.text


def test_on_a_terminal_a_running_call_shows_and_goes_away() -> None:
    screen = Screen(terminal=True)
    screen.call("Run make", "execute")
    assert "Run make" in screen.out.getvalue()
    screen.delta("compiling\n", "tool_output")
    assert "compiling" in screen.out.getvalue()
    screen.result()
    assert screen.text.count("✓") == 1


@pytest.mark.parametrize(
    ("severity", "words"), [("info", "ℹ Note"), ("warning", "! Warning"), ("error", "✗ Error")]
)
def test_a_notice_says_how_severe_it_is_in_words(severity: str, words: str) -> None:
    screen = Screen()
    screen.event("notice", severity=severity, title="Begun anew", description="a\nb")
    assert screen.text == f"{words}: Begun anew\n    a\n    b\n"


def test_a_hostile_notice_stays_text() -> None:
    screen = Screen()
    screen.event("notice", severity="warning", title=HOSTILE, description=f"{HOSTILE}[bold]")
    assert not set("\x1b\r\x07\u202e\x9b") & set(screen.text)
    assert "[bold]" in screen.text
