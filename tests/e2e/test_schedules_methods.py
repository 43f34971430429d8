"""``schedule/*`` over the wire: real servers that fire by the real clock, and what is refused."""

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.checked import CheckedServer
from harness.process import RpcError, ServerProcess, scenario, types

SCENE = """
rules:
  - when: {last_user: hang}
    answer: [{say: I begin}, {hang: true}]
  - when: {last_user: {regex: "^fail"}}
    answer: [{fail: {kind: modelError, message: No., retryable: false}}]
  - when: {last_user: {regex: "^wake me"}, step: 0}
    answer: [{call: {tool: schedule_create, arguments: {prompt: look, cron: "0 0 29 2 *", name: mine}}}]
default:
  - say: "Did {{last_user}}."
  - usage: {input_tokens: 10, output_tokens: 5}
"""
YEARLY = {"cron": "0 0 29 2 *"}
LEAVES = {"config": {"store": {"waiting": "leave"}}}
Start = Callable[..., CheckedServer]


def at(**later: float) -> dict[str, str]:
    """An instant so much later than now."""
    instant = datetime.now(UTC) + timedelta(**later)
    return {"at": instant.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CheckedServer]:
    folder = tmp_path_factory.mktemp("schedules")
    running = CheckedServer(folder, model=scenario(folder, SCENE), approvals=False)
    with running:
        yield running


@pytest.fixture
def work(server: CheckedServer) -> Path:
    folder = server.folder / f"work-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    return folder


@pytest.fixture
def session(server: CheckedServer, work: Path) -> str:
    return server.create(work, mode="work")


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


def made(server: ServerProcess, target: dict[str, Any], **more: Any) -> dict[str, Any]:
    params = {"profile": "default", "trigger": YEARLY, "prompt": "look", "target": target, **more}
    return server.call("schedule/create", **params)["schedule"]


def pinned(session_id: str) -> dict[str, Any]:
    return {"sessionId": session_id}


def fresh(folder: Path) -> dict[str, Any]:
    return {"fresh": {"cwd": str(folder)}}


def get(server: ServerProcess, schedule: dict[str, Any]) -> dict[str, Any]:
    return server.call("schedule/get", scheduleId=schedule["scheduleId"])["schedule"]


def runs(server: ServerProcess, schedule: dict[str, Any]) -> list[dict[str, Any]]:
    return server.call("schedule/runs", scheduleId=schedule["scheduleId"])["data"]


def refusal(server: ServerProcess, method: str, **params: Any) -> dict[str, Any]:
    with pytest.raises(RpcError) as refused:
        server.call(method, **params)
    assert len(refused.value.error["message"]) < 600
    return refused.value.error


def kind(server: ServerProcess, method: str, **params: Any) -> str:
    return refusal(server, method, **params)["data"]["kind"]


def until(server: ServerProcess, instant: str) -> None:
    """Asks the server the time until it is past `instant`."""
    while server.call("server/ping")["at"] <= instant:
        pass


def follow(server: ServerProcess, *kinds: str) -> None:
    server.call("event/subscribe", scope={"kind": "all"}, types=list(kinds))


def hear(server: ServerProcess, kind: str, count: int) -> list[dict[str, Any]]:
    """So many events of a type, of those that are followed."""
    heard: list[dict[str, Any]] = []

    def enough(event: dict[str, Any]) -> bool:
        if event["type"] == kind:
            heard.append(event)
        return len(heard) == count

    server.told(enough)
    return heard


# --- by the real clock --------------------------------------------------------------------------------


def test_schedules_fire_by_the_real_clock_in_fresh_sessions_until_their_bound(
    start: Start, tmp_path: Path
) -> None:
    server = start()
    follow(server, "turn_finished", "schedule_fired")
    schedule = made(
        server, fresh(tmp_path / "work"), trigger={"everySeconds": 1}, maxFires=2, overlap="queue"
    )
    hear(server, "turn_finished", 2)
    two, one = runs(server, schedule)
    assert [one["outcome"], two["outcome"]] == ["completed", "completed"]
    assert one["sessionId"] != two["sessionId"] and one["dueAt"] < two["dueAt"]
    assert one["usage"]["inputTokens"] == 10
    log = server.events(one["sessionId"])
    assert types(log) == [
        "session_created", "schedule_fired", "turn_started", "ack", "message", "turn_finished",
    ]  # fmt: skip
    assert log[1]["actor"] == {
        "kind": "schedule", "id": schedule["scheduleId"], "name": schedule["name"],
    }  # fmt: skip
    after = get(server, schedule)
    assert (after["enabled"], after["fireCount"]) == (False, 2)
    assert "maxFires" in after["disabledReason"]


def test_schedules_what_is_due_in_several_processes_fires_once(
    start: Start, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    leaves = start(callboard=LEAVES)
    session_id = leaves.create(folder, mode="work")
    targets = [*[fresh(folder)] * 8, *[pinned(session_id)] * 8]
    schedules = [made(leaves, target, trigger=at(seconds=2)) for target in targets]
    until(leaves, schedules[-1]["nextAt"])
    follow(leaves, "turn_finished")
    servers = [start(client_id=f"c{n}") for n in range(3)]
    hear(leaves, "turn_finished", 16)
    for schedule in schedules:
        (fire,) = runs(leaves, schedule)
        assert fire["outcome"] == "completed"
        assert get(leaves, schedule)["fireCount"] == 1
    fired = [e for e in leaves.events(session_id) if e["type"] == "schedule_fired"]
    assert len(fired) == 8
    hosts = {server.call("server/info")["hostId"] for server in servers}
    assert {e["data"]["hostId"] for e in fired} <= hosts


def test_schedules_one_fires_after_a_kill_in_a_session_that_nobody_has_opened(
    start: Start, tmp_path: Path
) -> None:
    first = start()
    session_id = first.create(tmp_path / "work", mode="work")
    schedule = made(first, pinned(session_id), trigger=at(seconds=2))
    first.kill()
    second = start()
    follow(second, "turn_finished")
    hear(second, "turn_finished", 1)
    (fire,) = runs(second, schedule)
    assert (fire["outcome"], fire["sessionId"]) == ("completed", session_id)
    assert get(second, schedule)["disabledReason"] == "it has fired"


def test_schedules_a_one_shot_that_was_missed_fires_at_the_next_start(
    start: Start, tmp_path: Path
) -> None:
    leaves = start(callboard=LEAVES)
    session_id = leaves.create(tmp_path / "work", mode="work")
    schedule = made(leaves, pinned(session_id), trigger=at(seconds=2))
    until(leaves, schedule["nextAt"])
    stays = start(client_id="stays")
    follow(stays, "turn_finished")
    hear(stays, "turn_finished", 1)
    (fire,) = runs(stays, schedule)
    assert fire["dueAt"] == schedule["nextAt"]
    (fired,) = [e for e in stays.events(session_id) if e["type"] == "schedule_fired"]
    # a server that goes soon fires nothing
    assert fired["data"]["hostId"] == stays.call("server/info")["hostId"]


def test_schedules_the_end_of_a_run_that_a_kill_cut_off_is_recorded_by_the_next_server(
    start: Start, tmp_path: Path
) -> None:
    first = start()
    session_id = first.create(tmp_path / "work", mode="work")
    schedule = made(first, pinned(session_id), prompt="hang")
    follow(first, "turn_started")
    first.call("schedule/runNow", scheduleId=schedule["scheduleId"])
    hear(first, "turn_started", 1)
    first.kill()
    second = start()
    (fire,) = runs(second, schedule)
    assert (fire["outcome"], fire["turnId"] is None) == ("interrupted", False)
    after = get(second, schedule)
    assert (after["enabled"], after["failures"], after["fireCount"]) == (True, 0, 1)


def test_schedules_three_failures_in_a_row_are_told_and_end_it(
    server: CheckedServer, session: str
) -> None:
    schedule = made(server, pinned(session), prompt="fail")
    for _ in range(3):
        server.call("schedule/runNow", scheduleId=schedule["scheduleId"])
        server.wait(session)
    after = get(server, schedule)
    assert (after["enabled"], after["failures"]) == (False, 3)
    assert "No." in after["lastError"] and "3 runs failed" in after["disabledReason"]
    assert {fire["outcome"] for fire in runs(server, schedule)} == {"failed"}
    again = server.call("schedule/update", scheduleId=schedule["scheduleId"], enabled=True)
    assert again["schedule"]["failures"] == 0 and "disabledReason" not in again["schedule"]


def test_schedules_one_behind_a_busy_session_is_in_its_queue_and_can_be_taken_out(
    server: CheckedServer, session: str
) -> None:
    schedule = made(server, pinned(session))
    server.prompt(session, "hang")
    assert (
        server.call("schedule/runNow", scheduleId=schedule["scheduleId"])["fire"]["outcome"]
        == "queued"
    )
    (waits,) = server.call("session/queue", sessionId=session)["data"]
    assert (waits["kind"], waits["author"]["kind"]) == ("schedule", "schedule")
    refused = refusal(
        server, "session/queueUpdate", sessionId=session, eventSeq=waits["eventSeq"],
        content=[{"type": "text", "text": "else"}],
    )  # fmt: skip
    assert "schedule" in refused["message"]
    server.call("session/queueRemove", sessionId=session, eventSeq=waits["eventSeq"])
    (fire,) = runs(server, schedule)
    assert fire["outcome"] == "cancelled"
    server.call("session/cancel", sessionId=session)
    server.wait(session)


def test_schedules_an_agent_makes_its_own_and_they_end_with_its_session(
    server: CheckedServer, session: str
) -> None:
    server.prompt(session, "wake me")
    server.wait(session)
    (schedule,) = server.call("schedule/list", sessionId=session)["data"]
    assert (schedule["createdBy"], schedule["name"]) == (session, "mine")
    server.call("session/close", sessionId=session)
    assert get(server, schedule)["disabledReason"] == f"its session {session} was closed"


# --- lists --------------------------------------------------------------------------------------------


def test_schedules_are_listed_by_profile_and_name_in_pages(start: Start, tmp_path: Path) -> None:
    server = start()
    session_id = server.create(tmp_path / "work")
    names = ["zebra", "ant", "Moth"]
    for name in names:
        made(server, pinned(session_id), name=name)
    made(server, fresh(tmp_path / "work"), name="bee", enabled=False)

    def listed(**more: Any) -> list[str]:
        found: list[str] = []
        while True:
            page = server.call("schedule/list", limit=1, **more)
            found += [each["name"] for each in page["data"]]
            if not page.get("nextCursor"):
                return found
            more["cursor"] = page["nextCursor"]

    assert listed() == ["Moth", "ant", "bee", "zebra"]
    assert listed(sessionId=session_id) == ["Moth", "ant", "zebra"]
    assert listed(enabled=False) == ["bee"]
    assert listed(profile="nobody") == []
    for bad in ("x", "[]", "[1,2]", '["default"]'):
        assert kind(server, "schedule/list", cursor=bad) == "invalidCursor"


def test_schedules_runs_come_in_pages_the_newest_first(server: CheckedServer, session: str) -> None:
    schedule = made(server, pinned(session))
    fires: list[str] = []
    for _ in range(3):
        fire = server.call("schedule/runNow", scheduleId=schedule["scheduleId"])["fire"]
        fires.insert(0, fire["fireId"])
        server.wait(session)
    of = {"scheduleId": schedule["scheduleId"], "limit": 2}
    page = server.call("schedule/runs", **of)
    rest = server.call("schedule/runs", **of, cursor=page["nextCursor"])
    assert [f["fireId"] for f in (*page["data"], *rest["data"])] == fires
    assert "nextCursor" not in rest
    assert kind(server, "schedule/runs", **of, cursor="x") == "invalidCursor"


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"trigger": {"cron": "0 0 30 2 *"}}, "names a day that never comes"),
        ({"trigger": {"cron": "0 0 */30 * MON#2"}}, "never fires"),
        ({"trigger": {"cron": "0 9 * * *", "timeZone": "Europe/Berlim"}}, "Europe/Berlin"),
        ({"trigger": {"at": "2001-01-01T00:00:00Z"}}, "past"),
        ({"trigger": {}}, "exactly one"),
        ({"trigger": {"everySeconds": 0}}, "everySeconds"),
        ({"target": {}}, "either a session"),
        ({"target": {"sessionId": "ses_x", "fresh": {"cwd": "/"}}}, "either a session"),
        ({"target": {"fresh": {"cwd": "here"}}}, "absolute"),
        ({"prompt": " "}, "blank"),
        ({"name": ""}, "blank"),
        ({"maxFires": 0}, "maxFires"),
        ({"maxFailures": -1}, "maxFailures"),
        ({"expiresAt": "2001-01-01T00:00:00Z"}, "past"),
        ({"expiresAt": "never"}, "offset"),
        ({"profile": "nobody"}, "takes no part"),
    ],
)
def test_schedules_what_can_be_none_is_refused_with_the_way_out(
    server: CheckedServer, session: str, wrong: dict[str, Any], said: str
) -> None:
    params = {
        "profile": "default", "trigger": YEARLY, "prompt": "look", "target": pinned(session), **wrong,
    }  # fmt: skip
    error = refusal(server, "schedule/create", **params)
    assert error["data"]["kind"] == "scheduleInvalid"
    assert said in error["message"]
    assert server.call("schedule/list", sessionId=session)["data"] == []


def test_schedules_what_is_not_there_is_named(
    server: CheckedServer, session: str, work: Path
) -> None:
    params = {"profile": "default", "trigger": YEARLY, "prompt": "look"}
    create = "schedule/create"
    assert kind(server, create, **params, target=pinned("ses_none")) == "sessionNotFound"
    assert kind(server, create, **params, target=fresh(work / "no")) == "pathNotFound"
    nobody = {**params, "profile": "nobody"}
    assert kind(server, create, **nobody, target=fresh(work)) == "profileNotFound"
    schedule = made(server, pinned(session), name="one")
    assert kind(server, create, **params, target=pinned(session), name="one") == "nameInUse"
    for method in ("schedule/get", "schedule/runs", "schedule/runNow"):
        assert kind(server, method, scheduleId="sched_none") == "scheduleNotFound"
    update = {"scheduleId": schedule["scheduleId"]}
    assert kind(server, "schedule/update", scheduleId="x", name="y") == "scheduleNotFound"
    assert kind(server, "schedule/update", **update) == "scheduleInvalid"
    nowhere = {"target": fresh(work / "no")}
    assert kind(server, "schedule/update", **update, **nowhere) == "pathNotFound"
    assert kind(server, "schedule/preview", trigger=YEARLY, count=0) == "scheduleInvalid"
    assert kind(server, "schedule/preview", trigger={"cron": "nonsense"}) == "scheduleInvalid"
    server.call("session/archive", sessionId=session)
    assert kind(server, "schedule/runNow", **update) == "sessionArchived"
    server.call("session/unarchive", sessionId=session)
    server.call("session/close", sessionId=session)
    assert kind(server, create, **params, target=pinned(session)) == "sessionClosed"
    assert kind(server, "schedule/update", **update, enabled=True) == "sessionClosed"


def test_schedules_a_secret_in_a_prompt_is_not_kept(start: Start, tmp_path: Path) -> None:
    secret = "sk-ant-" + "x" * 60
    server = start(environ={"ANTHROPIC_API_KEY": secret})
    session_id = server.create(tmp_path / "work")
    schedule = made(server, pinned(session_id), prompt=f"use {secret} for it")
    assert secret not in schedule["prompt"]
    server.call("schedule/runNow", scheduleId=schedule["scheduleId"])
    server.wait(session_id)
    assert secret not in str(server.events(session_id))
    assert secret.encode() not in (tmp_path / "store.db").read_bytes()


def test_schedules_and_rooms_are_told_by_the_server_to_be_there(server: CheckedServer) -> None:
    features = server.call("server/info")["features"]
    assert (features["schedules"], features["rooms"]) == (True, True)
