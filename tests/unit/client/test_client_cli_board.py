"""What is shown of a task board: its lines as they happen, the board in little room, and nothing that commands
a terminal."""

import io
from typing import Any

from rich.console import Console

from callboard.cli.board import Board
from callboard.cli.present import Presenter
from callboard_rpc.agents import Agent
from callboard_rpc.common import SessionId
from callboard_rpc.convert import structure_lenient
from callboard_rpc.events import Event
from callboard_rpc.groups import Group, GroupTask
from callboard_rpc.sessions import Session

ROOT, ONE, TWO = SessionId("ses_1"), SessionId("ses_2"), SessionId("ses_3")
AT = "2026-01-01T00:00:00Z"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\r\x9b1m"
AGENT = {
    "parentId": ROOT, "rootId": ROOT, "depth": 1, "status": "running", "profile": "default",
    "mode": "work", "createdAt": AT, "updatedAt": AT,
}  # fmt: skip


class Screen:
    def __init__(self, front: SessionId = ROOT) -> None:
        self.out = io.StringIO()
        console = Console(file=self.out, width=120, highlight=False, markup=False, emoji=False)
        self.presenter = Presenter(console=console, root=front)
        self.presenter.board.root = ROOT
        for id, name in ((ONE, "one"), (TWO, "two")):
            path = [{"sessionId": id, "name": name}]
            agent = {**AGENT, "agentId": id, "name": name, "path": path}
            self.presenter.crew.add(structure_lenient(agent, Agent))

    def event(
        self, type_: str, session: str = ROOT, by: str = "agent", actor: str = "a", **data: Any
    ) -> None:
        wire = {
            "pos": 1, "sessionId": session, "seq": 9, "eventId": "evt_1", "type": type_, "at": AT,
            "actor": {"kind": by, "id": actor}, "data": data,
        }  # fmt: skip
        self.presenter.show(structure_lenient(wire, Event))

    def changed(self, status: str, agent: str = ONE, **more: Any) -> None:
        self.event(
            "group_task_status_changed", taskId="tsk_1", status=status, agentId=agent, **more
        )

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()


def test_what_happens_to_a_task_is_told_by_its_title_and_by_who_does_it() -> None:
    screen = Screen()
    task = {"taskId": "tsk_1", "groupId": "grp_1", "createdBy": ROOT}
    screen.event("agent_group_created", groupId="grp_1", name="work")
    screen.event("group_task_created", **task, title="parse")
    screen.event("group_task_created", **{**task, "taskId": "tsk_2"}, title="sing", required=False)
    screen.event("agent_group_member_joined", groupId="grp_1", agentId=ONE)
    screen.event("group_task_claimed", taskId="tsk_1", agentId=ONE)
    screen.changed("in_progress")
    screen.changed("blocked", reason="no\nkey")
    screen.changed("claimed", ROOT, assignee=TWO, reason="reassigned")
    screen.changed("completed", TWO, summary="did it")
    screen.event("group_task_claimed", by="client", taskId="tsk_2", agentId=ROOT)
    screen.event("group_task_released", taskId="tsk_2", agentId=ROOT)
    screen.changed("cancelled", ROOT)
    screen.event("completion_changed", completion="implemented_not_verified", summary="All of it.")
    assert screen.lines == [
        "☐ task: parse",
        "☐ task (optional): sing",
        "☐ one claims: parse",
        "◐ one begins: parse",
        "■ one cannot do: parse (no key)",
        "☐ the root gives to two: parse",
        "☑ two completes: parse (did it)",
        "☐ a person claims: sing",
        "☐ the root gives back: sing",
        "■ the root cancels: parse",
        "☑ it says that all is implemented; nobody has verified it: All of it.",
    ]


def said(screen: Screen, **more: Any) -> None:
    message: dict[str, Any] = {
        "messageId": "msg_1",
        "groupId": "grp_1",
        "sender": ONE,
        "text": "mind\nthe gap",
    }
    screen.event("group_message_queued", **{**message, "to": "group", "recipients": [], **more})


def taken_in(screen: Screen, session: str, sender: str = ONE) -> None:
    author = {"kind": "agent", "name": "one", "id": sender}
    text = '<group-message from="one">\nmind the gap\n</group-message>'
    screen.event("directive", session, messageId="m", author=author, text=text)
    screen.event(
        "group_message_delivered", session, messageId="msg_1", groupId="grp_1", sender=sender
    )


def test_a_message_is_told_once_and_then_who_has_read_it() -> None:
    screen = Screen()
    said(screen, recipients=[ROOT, TWO])
    said(screen, to="agent", recipients=[TWO])
    said(screen, to="root", recipients=[ROOT], sender=TWO)
    taken_in(screen, TWO)
    taken_in(screen, ROOT)
    person = {"kind": "person", "name": "me"}
    screen.event("directive", messageId="m", author=person, text="<group-message is my topic")
    assert screen.lines == [
        "✉ one to the group: mind the gap",
        "✉ one to two: mind the gap",
        "✉ two to the root: mind the gap",
        "← two reads what one has written",
        "← what one has written",
        "» me: <group-message is my topic",
    ]


def called(screen: Screen, session: str, name: str, status: str = "ok", **happens: Any) -> None:
    """A call of a tool that has ended, after the event of what it has done."""
    call = {"callId": "c", "name": name, "kind": "other"}
    screen.event("tool_call", session, **call, messageId="m", arguments={}, title=f"call {name}")
    if happens:
        screen.event(session=ROOT, actor=session, **happens)
    text = "not_owner: it is not yours" if status == "error" else "a task"
    screen.event("tool_result", session, callId="c", name=name, status=status, text=text)


def test_what_a_call_does_to_the_board_is_told_once() -> None:
    screen = Screen()
    task = {"taskId": "tsk_1", "groupId": "grp_1", "createdBy": ROOT, "title": "parse"}
    message = {"messageId": "msg_1", "groupId": "grp_1", "recipients": [], "to": "group"}
    called(screen, ROOT, "group_task", type_="group_task_created", **task)
    called(screen, ONE, "group_task", type_="group_task_claimed", taskId="tsk_1", agentId=ONE)
    called(screen, ONE, "group_message", type_="group_message_queued", **message, sender=ONE,
           text="mind the gap")  # fmt: skip
    done = {"completion": "implemented_not_verified", "summary": "all"}
    called(screen, ROOT, "complete", type_="completion_changed", **done)
    assert screen.lines == [
        "☐ task: parse",
        "☐ one claims: parse",
        "✉ one to the group: mind the gap",
        "☑ it says that all is implemented; nobody has verified it: all",
    ]


def test_a_call_that_no_event_tells_of_is_told_by_itself() -> None:
    screen = Screen(front=ONE)
    # what only looks, what is refused, what is done while only the log of the agent is followed
    called(screen, ONE, "group_status")
    called(screen, ONE, "group_task", status="error")
    called(screen, ONE, "group_task")
    # somebody else did that, and a child that begins with a task is not that task
    screen.event("group_task_claimed", by="client", actor=ROOT, taskId="tsk_1", agentId=ROOT)
    called(screen, ONE, "group_task")
    claimed = {"taskId": "tsk_1", "agentId": TWO}
    called(screen, ONE, "spawn_agent", type_="group_task_claimed", **claimed)
    called(screen, ONE, "group_task")
    assert screen.lines == [
        "✓ call group_status",
        "✗ call group_task  error",
        "    not_owner: it is not yours",
        "✓ call group_task",
        "☐ a person claims: tsk_1",
        "✓ call group_task",
        "☐ two claims: tsk_1",
        "✓ call spawn_agent",
        "✓ call group_task",
    ]


def test_in_front_of_an_agent_the_root_is_still_the_root() -> None:
    screen = Screen(front=ONE)
    taken_in(screen, ONE, sender=ROOT)
    assert screen.lines == ["← what the root has written"]


def test_nothing_of_it_commands_the_terminal() -> None:
    screen = Screen()
    screen.event("group_task_created", taskId=HOSTILE, groupId="g", createdBy=ROOT, title=HOSTILE)
    screen.event("group_task_claimed", taskId=HOSTILE, agentId=HOSTILE)
    screen.event("group_task_claimed", taskId=HOSTILE + "2", agentId=ONE)
    screen.changed("blocked", HOSTILE, reason=HOSTILE)
    said(screen, text=HOSTILE, sender=HOSTILE, to="agent", recipients=[HOSTILE])
    screen.event("completion_changed", completion="implemented_not_verified", summary=HOSTILE)
    assert len(screen.lines) == 6
    assert not set(screen.out.getvalue()) & set("\x1b\x07\r\x9b\u202e")


def task(number: int, status: str = "pending", **more: Any) -> GroupTask:
    wire = {
        "taskId": f"tsk_{number:026}", "groupId": "grp_1", "title": f"task {number}",
        "status": status, "createdBy": ROOT, "createdAt": AT, "updatedAt": AT,
        "ready": status == "pending", **more,
    }  # fmt: skip
    return structure_lenient(wire, GroupTask)


def board(*tasks: GroupTask, **more: Any) -> Board:
    session = {
        "sessionId": ROOT, "rootId": ROOT, "depth": 0, "cwd": "/w", "profile": "default",
        "mode": "work", "status": "idle", "createdAt": AT, "updatedAt": AT, "headSeq": 1, "queueLength": 0, "pendingApprovals": 0,
    }  # fmt: skip
    root = {"agentId": ROOT, "name": "root", "isRoot": True}
    wire = {
        "groupId": "grp_1", "rootId": ROOT, "name": "work", "createdAt": AT, "members": [root],
        "counts": {"total": len(tasks)}, **more,
    }  # fmt: skip
    return Board(
        session=structure_lenient(session, Session),
        group=structure_lenient(wire, Group),
        tasks=tasks,
    )


def plain(board: Board, rows: int | None = None) -> list[str]:
    return [each.plain.rstrip() for each in board.lines(rows)]


def test_a_board_that_is_higher_than_the_terminal_says_how_much_it_leaves_out() -> None:
    shown = board(*(task(n) for n in range(50)), *(task(n, "completed") for n in range(50, 90)))
    assert len(plain(shown)) == 3 + 2 + 90
    small = plain(shown, 20)
    assert len(small) <= 20
    assert "ready (50)" in small and "completed (40)" in small
    assert "  45 more" in small and "  35 more" in small
    text = "\n".join(small)
    assert "task 0\n" in text and "task 89" in text, "first what can be begun, last what was done"
    assert len(plain(shown, 3)) < 20, "as little as there can be"


def test_ids_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    lines = plain(board(task(1), task(2)))
    shown = [line.split()[0] for line in lines if line.endswith(("task 1", "task 2"))]
    assert shown == [f"{1:026}", f"{2:026}"]


def test_a_board_that_changed_while_it_was_read_is_shown_all_the_same() -> None:
    unknown = f"tsk_{7:026}"
    failure = {"taskId": unknown, "dependencyId": unknown, "status": "blocked"}
    found = {"taskIds": [unknown, f"tsk_{1:026}"], "path": "a.py"}
    shown = plain(board(task(1, "claimed"), dependencyFailures=[failure], conflicts=[found]))
    assert f"    ! {unknown} changes a.py, too" in shown


def test_an_active_task_says_that_nobody_is_at_it() -> None:
    def told(status: str) -> list[str]:
        member = {"agentId": ONE, "name": "one", "status": status}
        lines = plain(board(task(1, "claimed", assignee=ONE), members=[member]))
        return [each.strip() for each in lines if "!" in each]

    assert told("starting") == told("running") == []
    assert told("interrupted") == [
        "! one is not at work (interrupted): continue one, or assign it to another"
    ]
    assert told("closed") == ["! one is closed: assign it to another"]
    done = board(task(1, "completed", assignee=ONE), members=[])
    assert not any("!" in each for each in plain(done))


def test_a_task_says_each_thing_that_keeps_it_back_once() -> None:
    first, second, last = (task(n) for n in (1, 2, 3))
    waiting = task(3, ready=False, blockers=[first.task_id, second.task_id])
    failure = {"taskId": last.task_id, "dependencyId": first.task_id, "status": "cancelled"}
    lines = plain(board(task(1, "cancelled"), second, waiting, dependencyFailures=[failure]))
    at = next(n for n, each in enumerate(lines) if each.endswith("task 3"))
    assert lines[at + 1 : at + 3] == [
        f'    waits for {2:026} "task 2"',
        f'    ! {1:026} "task 1" is cancelled: this never becomes ready by itself',
    ]
