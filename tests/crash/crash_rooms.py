"""Scenes in a room, and what must hold of rooms after a crash: what one agent says to another is lost by none, and
wakes nobody twice."""

from collections import Counter
from collections.abc import Callable

from crash_ledger import Event, Snapshot, held
from crash_scenes import Play
from crash_stage import Stage, die

from callboard.rooms.mentions import mentioned
from harness.process import ServerProcess

MEMBERS = ("default", "two")
BUDGET = 3


def _greet(stage: Stage, server: ServerProcess) -> None:
    place = stage.cwd / ".callboard" / "agents"
    place.mkdir(parents=True, exist_ok=True)
    (place / "two.md").write_text("---\nname: two\n---\nYou are two.\n")
    stage.greet(server)


# --- what clients do ----------------------------------------------------------------------------


def converse(stage: Stage, server: ServerProcess) -> None:
    """Two agents address each other until their burst is spent; then a person goes on."""
    _greet(stage, server)
    room = stage.create(server, members=list(MEMBERS), burstBudget=BUDGET)
    stage.prompt(server, room, "gather")
    server.wait(room)
    stage.prompt(server, room, "talk on, @two")
    server.wait(room)


def reshape(stage: Stage, server: ServerProcess) -> None:
    """Agents come and go."""
    _greet(stage, server)
    room = stage.create(server)
    for verb, params in (
        ("Add", {"name": "two", "host": True}),
        ("Remove", {"name": "default"}),
        ("Add", {"name": "default"}),
        ("Remove", {"name": "two"}),
    ):
        shown = server.call(f"session/member{verb}", sessionId=room, **params)["room"]
        stage.told_members.append([member["name"] for member in shown["members"]])


def take_over(stage: Stage, server: ServerProcess) -> None:
    """A server that finds a mention which nobody has answered."""
    stage.greet(server)
    server.wait(stage.created[0])


def _dies_addressing(stage: Stage) -> None:
    die(stage, "turns.try_to_end.committed", converse)


PRELUDES: dict[Play, Callable[[Stage], object]] = {take_over: _dies_addressing}


# --- what must hold -----------------------------------------------------------------------------


def check_rooms(stage: Stage, shot: Snapshot) -> None:
    """Every last message that addresses a member has woken it, or was told to have woken nobody, with the end of
    its turn; and nothing else has. No burst is longer than its budget."""
    for log in shot.sessions.values():
        ends = {e["turnId"]: e for e in log if e["type"] == "turn_finished"}
        told = Counter(e["data"]["messageSeq"] for e in log if _of_mention(e))
        for event in filter(_of_mention, log):
            end = ends.get(event["turnId"])
            held(end is not None and end["seq"] > event["seq"], "woken before the end:", event)
            held(end is not None and end["data"]["outcome"] == "completed", "woken by", end)
            woken = event["type"] == "member_mentioned"
            held(woken == (event["data"]["burst"] < event["data"]["budget"]), "counted", event)
        due: Counter[int] = Counter(
            e["seq"] for e in log if _addresses(e) and _completed(ends.get(e["turnId"]))
        )
        held(told == due, "told of", told, "of", due)
        _check_burst(log)
    _check_told(stage, shot)


def check_all_answered(end: Snapshot) -> None:
    """Whoever was woken has had a turn for it."""
    for log in end.sessions.values():
        whose = {e["turnId"]: e["data"].get("profile") for e in log if e["type"] == "turn_started"}
        by = {seq: e["turnId"] for e in log if e["type"] == "ack" for seq in e["data"]["admits"]}
        for event in log:
            if event["type"] == "member_mentioned":
                turn = by.get(event["seq"])
                held(turn is not None, "nobody has answered", event)
                held(whose[turn] == event["data"]["name"], whose[turn], "has answered", event)


def _of_mention(event: Event) -> bool:
    return event["type"] in ("member_mentioned", "wake_suppressed")


def _completed(end: Event | None) -> bool:
    return end is not None and end["data"]["outcome"] == "completed"


def _addresses(event: Event) -> bool:
    data = event["data"]
    if event["type"] != "message" or not data.get("final"):
        return False
    text = "".join(block.get("text", "") for block in data["content"])
    return mentioned(text, MEMBERS, by=data["author"]["name"]) is not None


def _check_burst(log: list[Event]) -> None:
    burst = 0
    for event in log:
        if event["type"] == "message" and event["data"]["author"]["kind"] == "person":
            burst = 0
        elif _addresses(event):
            burst += 1
            held(burst <= BUDGET, "a burst of", burst)


def _check_told(stage: Stage, shot: Snapshot) -> None:
    """Whoever a client was told to take part did, by then."""
    if not stage.told_members:
        return
    (room,) = stage.created
    members: list[str] = []
    went_through: list[list[str]] = []
    for event in shot.sessions[room]:
        match event["type"]:
            case "member_added":
                members = [*members, event["data"]["name"]]
            case "member_removed":
                members = [each for each in members if each != event["data"]["name"]]
            case _:
                continue
        went_through.append(members)
    rest = iter(went_through)
    held(all(told in rest for told in stage.told_members), stage.told_members, went_through)
