"""What holds of the logs of child agents, and of what their parents are told (coordination 14-57)."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

Event = dict[str, Any]
TOLD = frozenset({"report", "question", "update"})
"""The kinds of deliveries by which a child tells its parent something."""


class Broken(AssertionError):
    """A promise that was not kept."""


def hold(condition: object, *what: object) -> None:
    """Raises `Broken` with `what` unless the condition holds."""
    if not condition:
        raise Broken(" ".join(str(each)[:2_000] for each in what))


def is_agent(events: list[Event]) -> bool:
    return bool(events) and events[0]["type"] == "agent_spawned"


def check_agent(session_id: str, events: list[Event]) -> None:
    """The log of one child, when nothing of it runs: it begins with its spawn and its brief, every turn has
    one outcome, every question one end, every interrupt that was consumed was asked for."""
    kinds = [e["type"] for e in events]
    hold(kinds.count("agent_spawned") == 1, session_id, "is spawned", kinds.count("agent_spawned"))
    hold(kinds[1] == "directive", session_id, "has no brief:", kinds[:3])
    hold(kinds.count("agent_closed") <= 1, session_id, "is closed more than once")
    _check_turns(session_id, events)
    asked = [e["data"]["askId"] for e in events if e["type"] == "agent_asked"
             and e["data"]["expectsReply"]]  # fmt: skip
    settled = Counter(e["data"]["askId"] for e in events if e["type"] == "agent_replied")
    hold(settled == Counter(asked), session_id, "asked", asked, "and was answered", settled)
    wanted = [e["data"]["interruptId"] for e in events if e["type"] == "agent_interrupt_requested"]
    consumed = Counter(
        e["data"]["interruptId"] for e in events if e["type"] == "agent_interrupt_consumed"
    )
    hold(set(consumed) <= set(wanted), session_id, "was told what nobody wanted", consumed)
    hold(set(consumed.values()) <= {1}, session_id, "was told twice", consumed)


def _check_turns(session_id: str, events: list[Event]) -> None:
    """Each turn ends in a report, in an interrupt without one, or in nothing when it is closed; a report of
    an abort stands behind the interrupt that says why."""
    closing = False
    outcomes: dict[str, list[Event]] = {}
    for event in events:
        turn = event.get("turnId")
        match event["type"]:
            case "turn_started":
                outcomes[turn] = []
            case "agent_report_created" | "agent_interrupted" if turn is not None:
                hold(turn in outcomes, session_id, "an outcome of no turn", event)
                outcomes[turn].append(event)
            case "agent_close_requested":
                closing = True
            case "turn_finished":
                _check_outcome(session_id, turn, outcomes[turn], closing)
            case _:
                pass


def _check_outcome(session_id: str, turn: str, outcome: list[Event], closing: bool) -> None:
    kinds = [e["type"] for e in outcome]
    reports = [e["data"]["report"] for e in outcome if e["type"] == "agent_report_created"]
    if closing and not kinds:
        return
    if kinds == ["agent_interrupted"]:
        hold(outcome[0]["data"].get("kind") is None, session_id, turn, "owes a report", outcome)
        return
    aborted = ["agent_interrupted", "agent_report_created"]
    hold(kinds in (["agent_report_created"], aborted), session_id, turn, "came to", kinds)
    hold((reports[0]["status"] == "aborted") == (kinds == aborted), session_id, turn, outcome)
    hold(reports[0]["turnId"] == turn, session_id, turn, "reports of another turn", reports)


# --- parents and children ------------------------------------------------------------------------


def told_in(events: list[Event]) -> Counter[str]:
    """What a parent was told, by delivery id: by messages, and by results of its calls."""
    told: Counter[str] = Counter()
    for event in events:
        data = event["data"]
        match event["type"]:
            case "message":
                parts = [data.get("delivered"), *data.get("joined", ())]
                told.update(p["deliveryId"] for p in parts if p and p["kind"] in TOLD)
            case "agent_notification_delivered":
                told[data["delivered"]["deliveryId"]] += 1
            case _:
                pass
    return told


def check_tree(logs: Mapping[str, list[Event]], waiting: Mapping[str, Collection[str]]) -> None:
    """Sessions and their children, when nothing runs: every report was told to its parent once, waits for it
    (`waiting`: by session, the ids in its inbox), or was dropped, and an event says so; no name is borne by
    two open children."""
    children = {key: log for key, log in logs.items() if is_agent(log)}
    for key, log in children.items():
        parent_id = log[0]["data"]["session"]["parentId"]
        parent = logs.get(parent_id)
        if parent is None:
            continue  # it was deleted
        told = told_in(parent)
        dropped = {
            d["deliveryId"]
            for e in parent
            if e["type"] == "deliveries_dropped"
            for d in e["data"]["deliveries"]
        }
        over = any(e["type"] == "session_closed" for e in parent)
        for event in log:
            if event["type"] == "agent_report_created":
                report = event["data"]["report"]["reportId"]
                waits = report in waiting.get(parent_id, ())
                hold(told[report] <= 1, parent_id, "was told twice of", report)
                places = told[report] + waits + (report in dropped)
                hold(
                    places == 1 or (over and places == 0), parent_id, "lost, or has twice,", report
                )
        hold(all(n == 1 for n in told.values()), parent_id, "was told twice:", told)
        hold(_is_spawned_by(log, parent), key, "was spawned by a call that is not there")
    _check_names(children)


def _is_spawned_by(log: list[Event], parent: list[Event]) -> bool:
    call_id = log[0]["data"].get("callId")
    return call_id is None or any(
        e["type"] == "tool_call" and e["data"]["callId"] == call_id for e in parent
    )


def _check_names(children: Mapping[str, list[Event]]) -> None:
    """Replays who was open when: a name is given again only after its bearer was closed."""
    moments = sorted(
        (event["pos"], event["type"], key, log[0]["data"])
        for key, log in children.items()
        for event in log
        if event["type"] in ("agent_spawned", "session_closed")
    )
    bearers: dict[tuple[str, str], str] = {}
    for _, kind, key, spawned in moments:
        place = (spawned["session"]["parentId"], spawned["name"])
        if kind == "session_closed":
            bearers.pop(place, None)
        else:
            hold(place not in bearers, place, "is borne by", bearers.get(place), "and", key)
            bearers[place] = key
