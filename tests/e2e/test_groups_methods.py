"""``group/*`` over the wire: what a person does at the task board in the place of the root, and what is refused."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.checked import CheckedServer, events_of
from harness.process import RpcError, ServerProcess, scenario, types

SCENE = """
rules:
  - when: {last_tool: run_command}
    answer: [{say: "Ran it."}]
  - when: {last_user: {regex: "run it"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "true"}}}]
  - when: {last_tool: group_task}
    answer: [{say: "{{last_tool}}"}]
  - when: {last_user: {regex: "claim (tsk_[a-z0-9]+)"}, step: 0}
    answer: [{call: {tool: group_task, arguments: {op: claim, task_id: "{{match.1}}"}}}]
  - when: {last_user: {regex: "complete (tsk_[a-z0-9]+)"}, step: 0}
    answer: [{call: {tool: group_task, arguments: {op: complete, task_id: "{{match.1}}", summary: "I did it."}}}]
default:
  - say: "Done."
"""
Start = Callable[..., CheckedServer]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CheckedServer]:
    folder = tmp_path_factory.mktemp("groups")
    running = CheckedServer(folder, model=scenario(folder, SCENE), approvals=False)
    with running:
        yield running


@pytest.fixture
def root(server: CheckedServer) -> str:
    folder = server.folder / f"work-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    return server.create(folder, mode="work")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers on a store of the test's own."""
    model = scenario(tmp_path, SCENE)
    (tmp_path / "work").mkdir()
    servers: list[CheckedServer] = []

    def start(**more: Any) -> CheckedServer:
        servers.append(CheckedServer(tmp_path, model=model, **{"approvals": False, **more}))
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()


def made(server: CheckedServer, root: str, title: str = "one", *after: str, **more: Any) -> str:
    """The id of a new task."""
    params = {"rootId": root, "title": title, "dependencies": list(after), **more}
    return server.call("group/taskCreate", **params)["task"]["taskId"]


def do(server: CheckedServer, verb: str, root: str, task_id: str, **more: Any) -> dict[str, Any]:
    """The task after something was done to it."""
    return server.call(f"group/task{verb}", rootId=root, taskId=task_id, **more)["task"]


def listed(server: CheckedServer, root: str, status: str = "all", **more: Any) -> list[str]:
    page = server.call("group/taskList", rootId=root, status=status, **more)
    return [task["taskId"] for task in page["data"]]


def group(server: CheckedServer, root: str) -> dict[str, Any]:
    return server.call("group/get", rootId=root)["group"]


def refusal(server: ServerProcess, method: str, **params: Any) -> dict[str, Any]:
    with pytest.raises(RpcError) as refused:
        server.call(method, **params)
    assert len(refused.value.error["message"]) < 500
    return refused.value.error


def kind(server: CheckedServer, method: str, **params: Any) -> str:
    return refusal(server, method, **params)["data"]["kind"]


def member(server: CheckedServer, root: str, name: str = "one") -> str:
    """An agent that is a member, since it has claimed a task, which was then released from it."""
    task_id = made(server, root, f"for {name}")
    agent_id = agent(server, root, name, f"claim {task_id}")
    do(server, "Cancel", root, task_id)
    return agent_id


def agent(server: CheckedServer, root: str, name: str, message: str = "go") -> str:
    """An agent that has ended its first turn."""
    params = {"parentId": root, "name": name, "message": message}
    agent_id = server.call("agent/spawn", **params)["agent"]["agentId"]
    server.wait(agent_id)
    return agent_id


def tell(server: CheckedServer, agent_id: str, text: str) -> None:
    """Has an agent go on, and waits until it has ended its turn."""
    server.call("agent/continue", agentId=agent_id, text=text)
    server.wait(agent_id)


# --- the board --------------------------------------------------------------------------------------


def test_coordination_79_80_looking_makes_no_group_and_the_first_task_makes_one(
    server: CheckedServer, root: str
) -> None:
    before = server.call("server/ping")["head"]
    looked = server.call("group/get", rootId=root)
    assert "group" not in looked or looked["group"] is None
    assert listed(server, root) == []
    assert server.call("group/messageList", rootId=root)["data"] == []
    assert server.call("server/ping")["head"] == before
    made(server, root)
    made(server, root, "two")
    assert types(server.events(root)).count("agent_group_created") == 1
    found = group(server, root)
    assert (found["rootId"], found["name"]) == (root, f"work-{found['name'][5:]}")
    assert [m["isRoot"] for m in found["members"]] == [True], "the root is one without joining"


def test_a_new_task_says_all_that_was_given_and_how_it_stands(
    server: CheckedServer, root: str
) -> None:
    first = made(server, root, "  first \n thing ")
    answer = server.call(
        "group/taskCreate", rootId=root, title="second", description="Know this.",
        dependencies=[first], required=False, expectedPaths=["a.py", " ", "b.py"],
    )  # fmt: skip
    task = answer["task"]
    assert task["title"] == "second" and task["description"] == "Know this."
    assert (task["status"], task["ready"], task["blockers"]) == ("pending", False, [first])
    assert (task["required"], task["expectedPaths"]) == (False, ["a.py", "b.py"])
    assert task["createdBy"] == root and "assignee" not in task
    assert answer["cursor"] == server.call("server/ping")["head"]
    (one,) = server.call("group/taskList", rootId=root, status="ready")["data"]
    assert (one["taskId"], one["title"], one["required"]) == (first, "first thing", True)
    (event,) = [e for e in server.events(root) if e["data"].get("taskId") == task["taskId"]]
    assert (event["type"], event["actor"]["kind"]) == ("group_task_created", "client")


def test_a_person_takes_a_task_of_the_root_through_its_life(
    server: CheckedServer, root: str
) -> None:
    one = made(server, root)
    two = made(server, root, "two", one)
    assert do(server, "Claim", root, one)["assignee"] == root
    released = do(server, "Release", root, one)
    assert released["status"] == "pending" and "assignee" not in released
    do(server, "Claim", root, one)
    assert do(server, "Start", root, one)["status"] == "in_progress"
    done = do(
        server, "Complete", root, one, summary="It is done.", findings=["f"], touchedFiles=["x.py"]
    )
    assert (done["status"], done["summary"]) == ("completed", "It is done.")
    assert (done["findings"], done["touchedFiles"]) == (["f"], ["x.py"])
    assert done["assignee"] == root, "it stays"
    assert listed(server, root, "ready") == [two]
    do(server, "Claim", root, two)
    blocked = do(server, "Block", root, two, reason="No key.")
    assert (blocked["status"], blocked["reason"]) == ("blocked", "No key.")
    assert do(server, "Reassign", root, two, agentId=root)["status"] == "claimed"
    cancelled = do(server, "Cancel", root, two, reason="Not needed.")
    assert (cancelled["status"], cancelled["reason"]) == ("cancelled", "Not needed.")
    assert types(server.events(root))[1:] == [
        "agent_group_created", "group_task_created", "group_task_created", "group_task_claimed",
        "group_task_released", "group_task_claimed", "group_task_status_changed",
        "group_task_status_changed", "group_task_claimed", "group_task_status_changed",
        "group_task_status_changed", "group_task_status_changed",
    ]  # fmt: skip


def test_coordination_88_89_90_the_group_tells_what_is_in_the_way(
    server: CheckedServer, root: str
) -> None:
    one = made(server, root, "one", expectedPaths=["./src/A.py"])
    two = made(server, root, "two", expectedPaths=["src\\a.py"])
    three = made(server, root, "three", one, two)
    four = made(server, root, "four", required=False)
    for task_id in (one, two):
        do(server, "Claim", root, task_id)
    found = group(server, root)
    assert [t["taskId"] for t in found["active"]] == [one, two]
    assert [t["taskId"] for t in found["ready"]] == [four]
    assert found["conflicts"] == [{"taskIds": [one, two], "path": "src/a.py"}]
    do(server, "Block", root, one, reason="why")
    do(server, "Cancel", root, two)
    found = group(server, root)
    assert found["conflicts"] == []
    assert [t["taskId"] for t in found["blocked"]] == [one]
    assert found["dependencyFailures"] == [
        {"taskId": three, "dependencyId": one, "status": "blocked"},
        {"taskId": three, "dependencyId": two, "status": "cancelled"},
    ]
    assert found["requiredUnfinished"] == [one, three]
    assert found["counts"] == {
        "total": 4, "pending": 2, "ready": 1, "claimed": 0, "inProgress": 0, "completed": 0,
        "blocked": 1, "cancelled": 1,
    }  # fmt: skip


def test_each_filter_shows_its_tasks_the_oldest_first(server: CheckedServer, root: str) -> None:
    ids = {status: made(server, root, status) for status in (
        "ready", "claimed", "in_progress", "blocked", "completed", "cancelled",
    )}  # fmt: skip
    ids["waits"] = made(server, root, "waits", ids["ready"])
    for status in ("claimed", "in_progress", "blocked", "completed"):
        do(server, "Claim", root, ids[status])
    do(server, "Start", root, ids["in_progress"])
    do(server, "Block", root, ids["blocked"], reason="why")
    do(server, "Complete", root, ids["completed"], summary="did")
    do(server, "Cancel", root, ids["cancelled"])
    shown = {
        "open": ["ready", "claimed", "in_progress", "blocked", "waits"],
        "ready": ["ready"],
        "active": ["claimed", "in_progress"],
        "pending": ["ready", "waits"],
        "blocked": ["blocked"],
        "completed": ["completed"],
        "cancelled": ["cancelled"],
        "all": list(ids),
    }
    for status, names in shown.items():
        assert listed(server, root, status) == [ids[name] for name in names], status
    assert [t["taskId"] for t in server.call("group/taskList", rootId=root)["data"]] == [
        ids[name] for name in shown["open"]
    ], "open is what is shown unless told"


def test_a_list_is_paged_by_places_that_new_tasks_do_not_move(
    server: CheckedServer, root: str
) -> None:
    ids = [made(server, root, f"task {n}") for n in range(5)]
    first = server.call("group/taskList", rootId=root, limit=2)
    assert [t["taskId"] for t in first["data"]] == ids[:2]
    do(server, "Cancel", root, ids[1])
    ids.append(made(server, root, "new"))
    rest = server.call("group/taskList", rootId=root, cursor=first["nextCursor"])
    assert [t["taskId"] for t in rest["data"]] == ids[2:]
    assert "nextCursor" not in rest
    told: list[str] = []
    page = server.call("group/taskList", rootId=root, status="all", limit=1)
    while True:
        told += [t["taskId"] for t in page["data"]]
        if "nextCursor" not in page:
            break
        page = server.call(
            "group/taskList", rootId=root, status="all", limit=1, cursor=page["nextCursor"]
        )
    assert told == ids, "each once"


def test_any_session_of_the_tree_names_its_group_and_a_person_is_the_root_in_it(
    server: CheckedServer, root: str
) -> None:
    one = agent(server, root, "one")
    task = server.call("group/taskCreate", rootId=one, title="for all")["task"]
    assert task["createdBy"] == root
    assert do(server, "Claim", one, task["taskId"])["assignee"] == root
    assert group(server, one) == group(server, root)
    assert len(group(server, root)["members"]) == 1


def test_a_board_is_exported_by_the_titles_of_its_tasks_in_whatever_pieces(
    server: CheckedServer, root: str
) -> None:
    one = made(server, root, "parse it")
    do(server, "Claim", root, one)
    do(server, "Complete", root, one, summary="did it")
    server.call("group/messageSend", rootId=root, to="group", text="all done")
    for limit in (1, 100):
        text, cursor = "", {}
        while True:
            piece = server.call(
                "session/export", sessionId=root, format="markdown", limit=limit, **cursor
            )
            text += piece["text"]
            if not piece.get("nextCursor"):
                break
            cursor = {"cursor": piece["nextCursor"]}
        lines = [line for line in text.splitlines() if line.startswith(">")]
        assert lines == [
            "> Task: parse it.",
            f"> Task parse it: claimed by {root}.",
            f"> Task parse it: completed by {root}: did it",
            f"> {root} to the group: all done",
        ]


# --- agents -----------------------------------------------------------------------------------------


def test_coordination_81_85_an_agent_that_claims_joins_and_a_person_gives_its_task_away(
    server: CheckedServer, root: str
) -> None:
    task_id = made(server, root)
    one = agent(server, root, "one", f"claim {task_id}")
    (found,) = server.call("group/taskList", rootId=root, status="active")["data"]
    assert found["assignee"] == one
    members = group(server, root)["members"]
    assert [(m["name"], m.get("status")) for m in members] == [("root", None), ("one", "completed")]
    error = refusal(server, "group/taskStart", rootId=root, taskId=task_id)
    assert error["data"]["kind"] == "notOwner", "being root gives no right to it"
    assert error["data"]["assignee"] == one
    two = member(server, root, "two")
    assert do(server, "Claim", root, task_id, agentId=two)["assignee"] == two
    assert do(server, "Reassign", root, task_id, agentId=one)["assignee"] == one
    tell(server, one, f"complete {task_id}")
    (done,) = server.call("group/taskList", rootId=root, status="completed")["data"]
    assert (done["taskId"], done["summary"]) == (task_id, "I did it.")


def test_coordination_99_to_104_messages_wait_for_their_recipients_next_turn(
    server: CheckedServer, root: str
) -> None:
    one, two = member(server, root, "one"), member(server, root, "two")
    say = {"rootId": root, "to": "group"}
    sent = server.call("group/messageSend", **say, text="  to all ")
    assert sent["recipients"] == [one, two]
    alone = server.call(
        "group/messageSend", rootId=root, to="agent", agentId=one, text="<b>to one</b>"
    )
    assert alone["recipients"] == [one]

    def inbox(agent_id: str) -> list[tuple[str, str, bool]]:
        page = server.call("group/messageList", rootId=root, agentId=agent_id)
        return [(m["messageId"], m["text"], m["seen"]) for m in page["data"]]

    newest_first = [
        (alone["messageId"], "<b>to one</b>", False), (sent["messageId"], "to all", False)
    ]  # fmt: skip
    assert inbox(one) == newest_first
    assert inbox(one) == newest_first, "looking marks nothing"
    assert server.call("session/get", sessionId=one)["session"]["status"] == "idle"
    tell(server, one, "go on")
    assert [seen for _, _, seen in inbox(one)] == [True, True]
    assert [seen for _, _, seen in inbox(two)] == [False]
    events = server.events(one)
    markers = [e for e in events if e["type"] == "group_message_delivered"]
    assert [e["data"]["messageId"] for e in markers] == [sent["messageId"], alone["messageId"]]
    told = [e["data"]["text"] for e in events if e["type"] == "directive"][-2:]
    assert 'from="root" to="group"' in told[0] and "&lt;b&gt;to one" in told[1]
    tell(server, one, "and on")
    assert len([e for e in server.events(one) if e["type"] == "group_message_delivered"]) == 2


def test_messages_are_paged_the_newest_first(server: CheckedServer, root: str) -> None:
    one = member(server, root)
    ids = [
        server.call("group/messageSend", rootId=root, to="group", text=f"m {n}")["messageId"]
        for n in range(5)
    ]
    asked = {"rootId": root, "agentId": one}
    first = server.call("group/messageList", **asked, limit=2)
    assert [m["messageId"] for m in first["data"]] == [ids[4], ids[3]]
    server.call("group/messageSend", rootId=root, to="group", text="new")
    rest = server.call("group/messageList", **asked, cursor=first["nextCursor"])
    assert [m["messageId"] for m in rest["data"]] == [ids[2], ids[1], ids[0]]
    assert "nextCursor" not in rest


# --- two processes ----------------------------------------------------------------------------------


def test_what_one_process_does_to_the_board_a_tree_subscription_in_another_sees_in_order(
    start: Start, tmp_path: Path
) -> None:
    here, there = start(client_id="here"), start(client_id="there")
    root = here.create(tmp_path / "work", mode="work")
    subscribed = there.call(
        "event/subscribe", scope={"kind": "tree", "id": root}, **{"from": "now"}
    )["subscriptionId"]
    one = made(here, root)
    assert do(there, "Claim", root, one)["assignee"] == root
    error = refusal(here, "group/taskClaim", rootId=root, taskId=one)
    assert error["data"]["kind"] == "taskNotClaimable"
    assert (error["data"]["status"], error["data"]["assignee"]) == ("claimed", root)
    do(here, "Complete", root, one, summary="did")
    agent_id = member(here, root)
    here.call("group/messageSend", rootId=root, to="agent", agentId=agent_id, text="hello")
    tell(here, agent_id, "go on")
    there.find_event(lambda e: e["type"] == "group_message_delivered")
    seen = [e for m in there.seen for e in events_of(m, subscribed)]
    own = [e for e in seen if e["sessionId"] == root]
    assert own == here.events(root)[1 : len(own) + 1]
    assert [e["type"] for e in seen if e["type"].startswith(("group_", "agent_group"))] == [
        "agent_group_created", "group_task_created", "group_task_claimed",
        "group_task_status_changed", "group_task_created", "agent_group_member_joined",
        "group_task_claimed", "group_task_status_changed", "group_message_queued",
        "group_message_delivered",
    ]  # fmt: skip
    assert group(here, root) == group(there, root)


def test_coordination_86_the_next_server_tells_the_same_board(start: Start, tmp_path: Path) -> None:
    first = start()
    root = first.create(tmp_path / "work", mode="work")
    one = made(first, root, "one", expectedPaths=["a"])
    two = made(first, root, "two", one)
    do(first, "Claim", root, one)
    agent_id = member(first, root)
    first.call("group/messageSend", rootId=root, to="group", text="hello")

    def told(server: CheckedServer) -> list[Any]:
        return [
            group(server, root),
            server.call("group/taskList", rootId=root, status="all")["data"],
            server.call("group/messageList", rootId=root, agentId=agent_id)["data"],
        ]

    before = told(first)
    first.kill()
    second = start()
    assert told(second) == before
    do(second, "Complete", root, one, summary="did")
    assert listed(second, root, "ready") == [two]


# --- what is refused --------------------------------------------------------------------------------

UNKNOWN = ["tsk_none", "", "\u0000", "tsk_" + "x" * 5_000, "' OR 1=1 --"]
ON_TASKS: dict[str, dict[str, Any]] = {
    "group/taskClaim": {},
    "group/taskStart": {},
    "group/taskComplete": {"summary": "did"},
    "group/taskBlock": {"reason": "why"},
    "group/taskRelease": {},
    "group/taskCancel": {},
    "group/taskReassign": {"agentId": "ses_none"},
}


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_an_unknown_task_or_session_is_one_error_and_changes_nothing(
    server: CheckedServer, root: str, unknown: str
) -> None:
    made(server, root)
    before = server.call("server/ping")["head"]
    for method, more in ON_TASKS.items():
        assert kind(server, method, rootId=root, taskId=unknown, **more) == "taskNotFound"
        assert kind(server, method, rootId=unknown, taskId=unknown, **more) == "sessionNotFound"
    for method, more in (
        ("group/get", {}),
        ("group/taskList", {}),
        ("group/messageList", {}),
        ("group/taskCreate", {"title": "x"}),
        ("group/messageSend", {"to": "group", "text": "x"}),
    ):
        assert kind(server, method, rootId=unknown, **more) == "sessionNotFound"
    assert server.call("server/ping")["head"] == before


def test_coordination_84_a_task_of_another_group_is_no_task(
    server: CheckedServer, root: str
) -> None:
    foreign = made(server, server.create(server.folder, mode="work"))
    assert kind(server, "group/taskClaim", rootId=root, taskId=foreign) == "taskNotFound"
    made(server, root)
    for method, more in ON_TASKS.items():
        assert kind(server, method, rootId=root, taskId=foreign, **more) == "taskNotFound"
    error = refusal(server, "group/taskCreate", rootId=root, title="x", dependencies=[foreign])
    assert (error["data"]["kind"], error["data"]["reason"]) == ("invalidGraph", "unknown")


CREATES: list[tuple[dict[str, Any], str, str | None]] = [
    ({"title": " \t\n"}, "invalidParams", "$.title"),
    ({"title": "x" * 201}, "invalidParams", "$.title"),
    ({"description": "x" * 16_001}, "invalidParams", "$.description"),
    ({"expectedPaths": [f"p{n}" for n in range(201)]}, "invalidParams", "$.expectedPaths"),
    ({"expectedPaths": ["x" * 2_001]}, "invalidParams", "$.expectedPaths"),
    ({"expectedPaths": "a.py"}, "invalidParams", "$.expectedPaths"),
    ({"dependencies": [f"tsk_{n}" for n in range(201)]}, "invalidParams", "$.dependencies"),
    ({"required": "yes"}, "invalidParams", "$.required"),
    ({"dependencies": ["tsk_none"]}, "invalidGraph", None),
]


def test_coordination_92_what_a_task_cannot_be_is_named_and_makes_nothing(
    server: CheckedServer, root: str
) -> None:
    one = made(server, root)
    before = server.call("server/ping")["head"]
    for changes, wanted, path in CREATES:
        error = refusal(server, "group/taskCreate", **{"rootId": root, "title": "new", **changes})
        assert error["data"]["kind"] == wanted, (changes, error)
        if path is not None:
            assert [fault["path"] for fault in error["data"]["errors"]] == [path]
    error = refusal(server, "group/taskCreate", rootId=root, title="x", dependencies=[one, one])
    assert (error["data"]["kind"], error["data"]["reason"]) == ("invalidGraph", "duplicate")
    assert server.call("server/ping")["head"] == before


def in_status(server: CheckedServer, root: str, status: str) -> str:
    """A task of the root's that stands so."""
    task_id = made(server, root, status)
    if status == "cancelled":
        do(server, "Cancel", root, task_id)
    elif status != "pending":
        do(server, "Claim", root, task_id)
    match status:
        case "in_progress":
            do(server, "Start", root, task_id)
        case "blocked":
            do(server, "Block", root, task_id, reason="why")
        case "completed":
            do(server, "Complete", root, task_id, summary="did")
        case _:
            pass
    return task_id


ALLOWED = {
    "group/taskClaim": {"pending"},
    "group/taskStart": {"claimed"},
    "group/taskComplete": {"claimed", "in_progress"},
    "group/taskBlock": {"claimed", "in_progress"},
    "group/taskRelease": {"claimed", "in_progress"},
    "group/taskCancel": {"pending", "claimed", "in_progress", "blocked"},
    "group/taskReassign": {"pending", "claimed", "in_progress", "blocked"},
}


@pytest.mark.parametrize("method", ON_TASKS)
def test_coordination_8_3_each_change_is_for_some_states_and_refused_in_the_others(
    server: CheckedServer, root: str, method: str
) -> None:
    for status in ("pending", "claimed", "in_progress", "blocked", "completed", "cancelled"):
        task_id = in_status(server, root, status)
        params = {"rootId": root, "taskId": task_id, **ON_TASKS[method]}
        if method == "group/taskReassign":
            params["agentId"] = root
        if status in ALLOWED[method]:
            server.call(method, **params)
            continue
        before = server.call("server/ping")["head"]
        error = refusal(server, method, **params)
        wanted = "taskNotClaimable" if method == "group/taskClaim" else "transitionNotAllowed"
        assert (error["data"]["kind"], error["data"]["status"]) == (wanted, status), (status, error)
        assert server.call("server/ping")["head"] == before


def test_coordination_83_a_task_that_waits_is_neither_claimed_nor_given_away(
    server: CheckedServer, root: str
) -> None:
    one = made(server, root)
    two = made(server, root, "two", one)
    for method, more in (
        ("Claim", {}),
        ("Claim", {"agentId": root}),
        ("Reassign", {"agentId": root}),
    ):
        error = refusal(server, f"group/task{method}", rootId=root, taskId=two, **more)
        assert (error["data"]["kind"], error["data"]["dependencies"]) == ("taskNotReady", [one])


def test_what_is_given_goes_to_members_that_are_open(server: CheckedServer, root: str) -> None:
    task_id = made(server, root)
    stranger = agent(server, root, "stranger")
    closed = member(server, root, "closed")
    server.call("agent/close", agentId=closed)
    foreign = server.create(server.folder, mode="work")
    for agent_id, wanted in (
        (stranger, "notAMember"), (foreign, "notAMember"), ("ses_none", "notAMember"),
        ("", "notAMember"), (closed, "agentClosed"),
    ):  # fmt: skip
        give = {"rootId": root, "taskId": task_id, "agentId": agent_id}
        assert kind(server, "group/taskReassign", **give) == wanted
        assert kind(server, "group/taskClaim", **give) == wanted
        say = {"rootId": root, "to": "agent", "agentId": agent_id, "text": "x"}
        assert kind(server, "group/messageSend", **say) == wanted
    for agent_id in (stranger, foreign, "ses_none", ""):
        assert kind(server, "group/messageList", rootId=root, agentId=agent_id) == "notAMember"
    assert server.call("group/messageList", rootId=root, agentId=closed)["data"] == []


def test_what_must_be_said_is_asked_for_and_bounded(server: CheckedServer, root: str) -> None:
    task_id = made(server, root)
    do(server, "Claim", root, task_id)
    on = {"rootId": root, "taskId": task_id}
    for method, params, path in (
        ("Complete", {"summary": " "}, "$.summary"),
        ("Complete", {}, "$.summary"),
        ("Complete", {"summary": "x" * 16_001}, "$.summary"),
        ("Complete", {"summary": "x", "findings": ["x"] * 201}, "$.findings"),
        ("Complete", {"summary": "x", "touchedFiles": ["x" * 2_001]}, "$.touchedFiles"),
        ("Block", {"reason": "\n"}, "$.reason"),
        ("Block", {}, "$.reason"),
        ("Cancel", {"reason": "x" * 16_001}, "$.reason"),
    ):
        error = refusal(server, f"group/task{method}", **on, **params)
        assert error["data"]["kind"] == "invalidParams", (method, params)
        assert [fault["path"] for fault in error["data"]["errors"]] == [path], (method, params)


def test_coordination_104_what_a_message_cannot_be_is_named(
    server: CheckedServer, root: str
) -> None:
    one = member(server, root)
    before = server.call("server/ping")["head"]
    for params, path in (
        ({"to": "group", "text": " \n"}, "$.text"),
        ({"to": "group", "text": "x", "agentId": one}, "$.agentId"),
        ({"to": "agent", "text": "x"}, "$.agentId"),
        ({"to": "root", "text": "x"}, "$.to"),
        ({"to": "agent", "text": "x", "agentId": root}, "$.to"),
        ({"to": "all", "text": "x"}, "$.to"),
    ):
        error = refusal(server, "group/messageSend", rootId=root, **params)
        assert error["data"]["kind"] == "invalidParams", (params, error)
        assert [fault["path"] for fault in error["data"]["errors"]] == [path], params
    error = refusal(server, "group/messageSend", rootId=root, to="group", text="é" * 2_001)
    assert error["data"]["kind"] == "messageTooLong"
    assert (error["data"]["bytes"], error["data"]["limit"]) == (4_002, 4_000)
    assert server.call("server/ping")["head"] == before
    server.call("group/messageSend", rootId=root, to="group", text="é" * 2_000)


def test_the_board_of_a_session_that_is_over_is_only_looked_at(
    server: CheckedServer, root: str
) -> None:
    task_id = made(server, root)
    for over, wanted in (("archive", "sessionArchived"), ("close", "sessionClosed")):
        server.call(f"session/{over}", sessionId=root)
        for method, more in ON_TASKS.items():
            assert kind(server, method, rootId=root, taskId=task_id, **more) == wanted
        assert kind(server, "group/taskCreate", rootId=root, title="x") == wanted
        assert kind(server, "group/messageSend", rootId=root, to="group", text="x") == wanted
        assert listed(server, root) == [task_id]
    server.call("session/delete", sessionId=root)
    assert kind(server, "group/get", rootId=root) == "sessionNotFound"


def test_wrong_cursors_limits_and_filters_are_named(server: CheckedServer, root: str) -> None:
    made(server, root)
    for cursor in ("", "7", "/", "/name", "x/"):
        asked = {"rootId": root, "cursor": cursor}
        assert kind(server, "group/taskList", **asked) == "invalidCursor"
    for cursor in ("", "x", "-1", "1" * 19):
        asked = {"rootId": root, "cursor": cursor}
        assert kind(server, "group/messageList", **asked) == "invalidCursor"
    assert kind(server, "group/taskList", rootId=root, limit=0) == "invalidParams"
    assert kind(server, "group/messageList", rootId=root, limit=0) == "invalidParams"
    error = refusal(server, "group/taskList", rootId=root, status="done")
    assert [fault["path"] for fault in error["data"]["errors"]] == ["$.status"]


def test_messaging_12_what_is_too_long_for_an_id_is_not_repeated_in_pieces(
    start: Start, tmp_path: Path
) -> None:
    """Half of a secret is none that anybody would know."""
    secret = "zq9-Sup3rS3cretValue+1234"
    server = start(environ={"MY_API_KEY": secret})
    root = server.create(tmp_path / "work", mode="work")
    made(server, root)
    for before in range(len("tsk_"), 100):
        given = "x" * before + secret
        for method, params in (
            ("group/get", {"rootId": given}),
            ("group/taskClaim", {"rootId": root, "taskId": given}),
            (
                "group/taskReassign",
                {"rootId": root, "taskId": made(server, root), "agentId": given},
            ),
            ("group/taskCreate", {"rootId": root, "title": "x", "dependencies": [given]}),
            ("group/taskList", {"rootId": root, "cursor": given}),
            ("group/messageList", {"rootId": root, "cursor": given}),
            ("group/messageList", {"rootId": root, "agentId": given}),
        ):
            assert secret[:6] not in refusal(server, method, **params)["message"]


def test_coordination_86_a_client_starts_an_agent_with_a_task_or_none(
    server: CheckedServer, root: str
) -> None:
    def create(title: str, *after: str) -> str:
        made = server.call("group/taskCreate", rootId=root, title=title, dependencies=list(after))
        return made["task"]["taskId"]

    one = create("one")
    two = create("two", one)
    for task_id, kind in ((two, "taskNotReady"), ("tsk_none", "taskNotFound")):
        with pytest.raises(RpcError) as refused:
            server.call("agent/spawn", parentId=root, name="a", message="go", taskId=task_id)
        assert refused.value.kind == kind
    assert server.call("agent/list", rootId=root)["data"] == []
    made = server.call("agent/spawn", parentId=root, name="a", message="go", taskId=one)
    agent_id = made["agent"]["agentId"]
    (active,) = server.call("group/get", rootId=root)["group"]["active"]
    assert (active["taskId"], active["assignee"]) == (one, agent_id)
    with pytest.raises(RpcError) as refused:
        server.call("agent/spawn", parentId=root, name="b", message="go", taskId=one)
    assert refused.value.kind == "taskNotClaimable"
    server.wait(agent_id)
