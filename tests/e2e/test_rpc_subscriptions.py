"""Subscriptions of a real server: no gap, no duplicate, nothing too early, nothing for those who stop."""

import base64
import json
import random
import threading
from typing import Any

import pytest

from harness.checked import CheckedServer, check_event, events_of
from harness.process import RpcError, ServerProcess, scenario, types

SCENARIO = """
chunk: 4
rules:
  - when: {last_user: write it, step: 0}
    answer: [{call: {tool: write_file, arguments: {path: note.txt, content: "hello"}}}]
  - when: {last_user: many chunks}
    answer: [{say: {text: "x", repeat: 5000, chunk: 1}}]
  - when: {last_user: slow}
    answer: [{say: {text: "abcdefgh", repeat: 4000, chunk: 1, delay_ms: 5}}]
  - when: {last_user: think first}
    answer: [{think: "a thought of some length"}, {say: "an answer of some length"}]
  - when: {last_user: print, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "for i in 1 2 3 4 5; do echo line $i; done"}}}]
default:
  - say: "You said {{last_user}}."
"""
CATALOG = {"turn_started", "turn_finished", "approval_request", "approval_decision"}
ALLOW = {"approvals": {"policy": {"run_command": "allow"}}}


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def start(tmp_path):
    """Starts servers on one store; the windows and other settings by environment."""
    running = []

    def begin(kind: type[ServerProcess] = CheckedServer, **more: Any) -> Any:
        more.setdefault("model", scenario(tmp_path, SCENARIO))
        more.setdefault("callboard", {"config": ALLOW})
        server = kind(tmp_path, **more)
        running.append(server)
        return server

    yield begin
    for server in running:
        server.__exit__()


@pytest.fixture
def server(start):
    return start()


def subscribe(server: ServerProcess, kind: str = "all", id: str | None = None, **more: Any) -> str:
    scope = {"kind": kind, **({"id": id} if id else {})}
    return server.call("event/subscribe", scope=scope, **more)["subscriptionId"]


def batches(server: ServerProcess, subscription: str) -> list[dict[str, Any]]:
    """The params of the batches of a subscription that were read so far."""
    return [
        m["params"]
        for m in server.seen
        if m.get("method") == "event/batch" and m["params"]["subscriptionId"] == subscription
    ]


def got(server: ServerProcess, subscription: str) -> list[dict[str, Any]]:
    return [e for batch in batches(server, subscription) for e in batch["events"]]


def up_to(server: ServerProcess, subscription: str, pos: int) -> list[dict[str, Any]]:
    """Reads until a subscription has reached a position; all its events."""
    while not any(
        int(b["cursor"].rpartition(".")[2]) >= pos for b in batches(server, subscription)
    ):
        server.receive()
    return got(server, subscription)


def position(cursor: str) -> int:
    return int(cursor.rpartition(".")[2])


def head(server: ServerProcess) -> int:
    return position(server.call("server/ping")["head"])


def everything(server: ServerProcess) -> list[dict[str, Any]]:
    out, after = [], {}
    while True:
        page = server.call("event/list", scope={"kind": "all"}, **after)
        out += page["data"]
        if page.get("nextCursor") is None:
            return out
        after = {"after": page["nextCursor"]}


# --- where they begin -------------------------------------------------------------------------------


def test_from_start_replays_all_then_goes_on_live(server, work):
    session = server.create(work)
    server.prompt(session, "one")
    server.wait(session)
    before = head(server)
    subscription = subscribe(server, **{"from": "start"})
    up_to(server, subscription, before)
    old = batches(server, subscription)
    assert all(b["replay"] for b in old if b["events"]) and old[-1]["caughtUp"]
    server.prompt(session, "two")
    server.wait(session)
    events = up_to(server, subscription, head(server))
    assert events == everything(server)
    new = [b for b in batches(server, subscription)[len(old) :] if b["events"]]
    assert not any(b["replay"] for b in new) and new[-1]["caughtUp"]


def test_interrupts_65_a_cursor_continues_without_a_gap_or_a_duplicate(server, work):
    session = server.create(work)
    for n in range(5):
        server.prompt(session, f"prompt {n}")
    server.wait(session)
    whole = everything(server)
    for event in whole:
        after = f"{server.call('server/info')['storeId']}.{event['pos']}"
        subscription = subscribe(server, **{"from": after})
        assert up_to(server, subscription, whole[-1]["pos"]) == whole[event["pos"] :]
        server.call("event/unsubscribe", subscriptionId=subscription)


def test_from_now_says_at_once_that_nothing_is_missing(server, work):
    server.create(work)
    subscription = subscribe(server)
    up_to(server, subscription, head(server))
    assert [(b["events"], b["caughtUp"]) for b in batches(server, subscription)] == [([], True)]


@pytest.mark.parametrize("scope", ["all", "session", "tree"])
def test_a_cursor_that_is_not_of_this_store_is_refused_by_its_kind(server, work, scope):
    session = server.create(work)
    store = server.call("server/info")["storeId"]
    for cursor in (
        "store_other.3",
        "later",
        "",
        f"{store}.999999",
        f"{store}.-1",
        f"{store}." + "9" * 40,
    ):
        for method, name in (("event/subscribe", "from"), ("event/list", "after")):
            with pytest.raises(RpcError) as refused:
                server.call(method, scope={"kind": scope, "id": session}, **{name: cursor})
            assert refused.value.kind == "invalidCursor", cursor


# --- the newest events first --------------------------------------------------------------------------


def test_the_newest_page_goes_on_backwards_to_the_beginning(server, work):
    sessions = [server.create(work) for _ in range(2)]
    for n in range(4):
        for session in sessions:
            server.prompt(session, f"prompt {n}")
            server.wait(session)
    whole = server.events(sessions[0])
    scope = {"kind": "session", "id": sessions[0]}
    pages, before = [], "now"
    while before is not None:
        page = server.call("event/list", scope=scope, before=before, limit=3)
        assert 0 < len(page["data"]) <= 3
        pages.append(page["data"])
        before = page.get("nextCursor")
    assert pages[0] == whole[-3:]
    assert [event for page in reversed(pages) for event in page] == whole
    assert position(page["cursor"]) == head(server)
    only = server.call("event/list", scope=scope, before="now", types=["turn_finished"], limit=1)
    assert only["data"] == [event for event in whole if event["type"] == "turn_finished"][-1:]
    assert only["nextCursor"]
    created = server.create(work)
    one = server.call("event/list", scope={"kind": "session", "id": created}, before="now")
    assert (types(one["data"]), one.get("nextCursor")) == (["session_created"], None)


def test_whoever_follows_from_the_newest_page_misses_nothing_that_another_process_commits(
    start, work
):
    """The cursor of the page is that of before it was read: what came meanwhile is in both, and never in none."""
    here, there = start(client_id="here"), start(client_id="there")
    session = here.create(work)
    scope = {"kind": "session", "id": session}
    stop = threading.Event()

    def write() -> None:
        n = 0
        while not stop.is_set():
            there.call("session/update", sessionId=session, title=f"title {n}")
            n += 1

    writing = threading.Thread(target=write)
    writing.start()
    rounds: list[tuple[list[int], str]] = []
    try:
        while len({seqs[-1] for seqs, _ in rounds}) < 20:
            page = here.call("event/list", scope=scope, before="now", limit=5)
            followed = subscribe(here, "session", session, **{"from": page["cursor"]})
            rounds.append(([event["seq"] for event in page["data"]], followed))
            if len(rounds) > 1 and rounds[-1][0] == rounds[-2][0]:
                here.call("event/unsubscribe", subscriptionId=rounds.pop()[1])
    finally:
        stop.set()
        writing.join()
    last = here.call("event/list", scope=scope, before="now", limit=1)["data"][0]
    for seqs, followed in rounds:
        live = [event["seq"] for event in up_to(here, followed, last["pos"])]
        assert sorted({*seqs, *live}) == list(range(seqs[0], last["seq"] + 1))
        # one that began last may have seen all of it on its page
        assert live == list(range(last["seq"] + 1 - len(live), last["seq"] + 1))


# --- what they hold ----------------------------------------------------------------------------------


def test_each_scope_holds_its_own_events_and_no_others(server, work):
    one, two = server.create(work), server.create(work)
    scopes = {
        "all": subscribe(server, "all"),
        "catalog": subscribe(server, "catalog"),
        "session": subscribe(server, "session", one),
        "tree": subscribe(server, "tree", two),
        "approvals": subscribe(server, "approvals"),
    }
    server.prompt(one, "write it")
    server.wait(one, "attention")
    server.prompt(two, "hello")
    server.wait(two)
    server.call("session/cancel", sessionId=one)
    server.wait(one)
    whole = [e for e in everything(server) if e["pos"] > 2]
    approvals = ("approval_request", "approval_decision")
    wanted = {
        "all": whole,
        "session": [e for e in whole if e["sessionId"] == one],
        "tree": [e for e in whole if e["sessionId"] == two],
        "approvals": [e for e in whole if e["type"] in approvals],
        "catalog": [e for e in whole if e["type"] in CATALOG],
    }
    for kind, expected in wanted.items():
        while len(got(server, scopes[kind])) < len(expected):
            server.receive()
    server.call("server/ping")
    events = {kind: got(server, id) for kind, id in scopes.items()}
    assert events == wanted
    assert {"turn_started", "turn_finished", "approval_request"} <= set(types(events["catalog"]))
    assert not {"message", "tool_call", "ack"} & set(types(events["catalog"]))


def test_types_narrow_a_scope_and_the_cursor_moves_all_the_same(server, work):
    session = server.create(work)
    subscription = subscribe(server, types=["turn_finished", "no_such_type"])
    server.prompt(session, "hello")
    server.wait(session)
    end = head(server)
    server.call("session/update", sessionId=session, title="x")
    server.prompt(session, "again")
    server.wait(session)
    while len(got(server, subscription)) < 2:
        server.receive()
    events = got(server, subscription)
    assert set(types(events)) == {"turn_finished"} and events[1]["pos"] > end
    cursor = batches(server, subscription)[-1]["cursor"]
    again = subscribe(server, types=["turn_finished"], **{"from": cursor})
    rest = up_to(server, again, head(server))
    assert [e["pos"] for e in events + rest] == [
        e["pos"] for e in everything(server) if e["type"] == "turn_finished"
    ]


def test_a_session_that_is_deleted_says_so_to_those_who_watch_it(server, start, work):
    other = start()
    for watcher in (server, other):
        for kind in ("session", "tree", "all", "catalog"):
            session = server.create(work)
            subscription = subscribe(watcher, kind, session, **{"from": "start"})
            server.call("session/delete", sessionId=session)
            event = watcher.find_event(
                lambda e, s=session: e["type"] == "session_deleted" and e["sessionId"] == s
            )
            assert event["seq"] == 2
            watcher.call("event/unsubscribe", subscriptionId=subscription)


# --- order -------------------------------------------------------------------------------------------


def test_the_reply_comes_before_any_event_or_delta_that_names_its_ids(server, work):
    """PROTOCOL 3: 200 pipelined creates, then as many prompts; keyed, so that their answers are late."""
    subscribe(server, "all")
    creates = [
        server.request("session/create", cwd=str(work), idempotencyKey=f"c{n}") for n in range(200)
    ]
    sessions = [server.result(id)["session"]["sessionId"] for id in creates]
    content = [{"type": "text", "text": "think first"}]
    prompts = [
        server.request("session/prompt", sessionId=s, content=content, idempotencyKey=f"p{n}")
        for n, s in enumerate(sessions)
    ]
    for id in prompts:
        server.result(id)
    for session in sessions:
        server.wait(session)
    told: set[str] = set()
    for message in server.seen:
        if "result" in message:
            result = message["result"]
            told.update(x for x in (result.get("turnId"),) if x)
            if "session" in result:
                told.add(result["session"]["sessionId"])
        for event in events_of(message):
            assert event["sessionId"] in told, event
            assert event.get("turnId") is None or event["turnId"] in told, event
        if message.get("method") == "event/delta":
            assert message["params"]["turnId"] in told, message


def test_a_request_for_an_approval_comes_after_the_reply_that_names_its_turn(server, work):
    session = server.create(work)
    subscribe(server, "session", session)
    content = [{"type": "text", "text": "write it"}]
    id = server.request("session/prompt", sessionId=session, content=content, idempotencyKey="k")
    server.until(lambda m: m.get("method") == "approval/request")
    assert any(m.get("id") == id and "result" in m for m in server.seen)


def test_interrupts_63_all_events_of_a_turn_come_before_its_end(server, work):
    sessions = [server.create(work) for _ in range(6)]
    subscription = subscribe(server)
    for session in sessions:
        for n in range(3):
            server.prompt(session, f"print {n}")
    for session in sessions:
        server.wait(session)
    ended: set[str] = set()
    for event in up_to(server, subscription, head(server)):
        assert event.get("turnId") not in ended, event
        if event["type"] == "turn_finished":
            ended.add(event["turnId"])
    assert len(ended) >= 6


def test_messaging_18_two_servers_on_one_store_see_one_order(server, start, work):
    other = start(client_id="other")
    here, there = subscribe(server), subscribe(other)
    sessions = [(s, s.create(work)) for s in (server, other) for _ in range(3)]
    for n in range(4):
        for owner, session in sessions:
            owner.prompt(session, f"prompt {n}")
    for owner, session in sessions:
        owner.wait(session)
    server.call("event/list", scope={"kind": "all"}, limit=1)
    end = everything(server)[-1]["pos"]
    first, second = up_to(server, here, end), up_to(other, there, end)
    assert first == second == everything(other)
    assert [e["pos"] for e in first] == sorted({e["pos"] for e in first})


def test_a_cursor_of_another_process_is_known_at_once(server, start, work):
    other = start(client_id="other")
    for _ in range(5):
        session = other.create(work)
        cursor = other.call("session/get", sessionId=session)["cursor"]
        subscription = subscribe(server, **{"from": cursor})
        assert server.call("event/list", scope={"kind": "all"}, before=cursor)["cursor"] >= cursor
        server.call("event/unsubscribe", subscriptionId=subscription)


def test_messaging_18_reconnects_at_random_cursors_lose_and_repeat_nothing(server, start, work):
    """While turns run here and in another process, a client comes back again and again, in either."""
    other = start(client_id="other")
    sessions = [(s, s.create(work)) for s in (server, other)]
    done = threading.Event()
    choose = random.Random(7)

    def talk(owner: ServerProcess, session: str) -> None:
        for n in range(25):
            content = [{"type": "text", "text": f"print {n}" if n % 3 else f"think first {n}"}]
            owner.request("session/prompt", sessionId=session, content=content)

    for owner, session in sessions:
        talk(owner, session)
    events: list[dict[str, Any]] = []
    cursor = "start"
    while not done.is_set():
        client = choose.choice((server, other))
        made = client.call(
            "event/subscribe",
            scope={"kind": "all"},
            maxBatch=choose.choice((1, 3, 50)),
            **{"from": cursor},
        )["subscriptionId"]
        for _ in range(choose.randint(1, 6)):
            client.until(
                lambda m, s=made: (
                    m.get("method") == "event/batch" and m["params"]["subscriptionId"] == s
                )
            )
            batch = client.seen[-1]["params"]
            events += batch["events"]
            cursor = batch["cursor"]
            if batch["caughtUp"]:
                break
        client.call("event/unsubscribe", subscriptionId=made)
        finished = sum(e["type"] == "turn_finished" for e in events)
        admitted = sum(len(e["data"]["admits"]) for e in events if e["type"] == "ack")
        if admitted == 50 and finished == sum(e["type"] == "turn_started" for e in events):
            done.set()
    assert events == everything(server)[: len(events)]
    for _, session in sessions:
        own = [e["seq"] for e in events if e["sessionId"] == session]
        assert own == list(range(1, len(own) + 1))


# --- deltas ------------------------------------------------------------------------------------------


def deltas(server: ServerProcess, subscription: str) -> list[dict[str, Any]]:
    return [
        m["params"]
        for m in server.seen
        if m.get("method") == "event/delta" and m["params"]["subscriptionId"] == subscription
    ]


def joined(pieces: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """The text of each message and kind; fails where a piece is missing or double."""
    texts: dict[tuple[str, str], str] = {}
    expected: dict[tuple[str, str], int] = {}
    for piece in pieces:
        key = (piece["messageId"], piece["kind"])
        assert piece["index"] == expected.get(key, 0), piece
        expected[key] = piece["index"] + piece["count"]
        texts[key] = texts.get(key, "") + piece["text"]
    return texts


def test_deltas_are_numbered_and_come_before_the_events_of_their_turn(server, work):
    session = server.create(work)
    subscription = subscribe(server, "session", session)
    for text in ("think first", "print it"):
        server.prompt(session, text)
        server.wait(session)
    end = head(server)
    up_to(server, subscription, end)
    texts = joined(deltas(server, subscription))
    said: dict[tuple[str, str], str] = {}
    for event in got(server, subscription):
        if event["type"] == "message" and event["data"]["author"]["kind"] == "agent":
            for block in event["data"]["content"]:
                kind = {"text": "answer", "thinking": "thought"}[block["type"]]
                said[event["data"]["messageId"], kind] = block["text"]
        if event["type"] == "tool_result":
            said[event["data"]["callId"], "tool_output"] = event["data"]["text"]
    outputs = [key for key in texts if key[1] == "tool_output"]
    assert (
        len(outputs) == 1
        and texts[outputs[0]].split() == "line 1 line 2 line 3 line 4 line 5".split()
    )
    assert {k: v for k, v in texts.items() if k not in outputs} == {
        k: v for k, v in said.items() if k not in outputs
    }
    closed: set[str] = set()
    for message in server.seen:
        for event in events_of(message, subscription):
            if event["type"] in ("message", "tool_result"):
                closed.add(event["data"].get("messageId") or event["data"]["callId"])
        if message.get("method") == "event/delta":
            assert message["params"]["messageId"] not in closed, "a delta after what it belongs to"


def test_five_thousand_chunks_arrive_whole(server, work):
    session = server.create(work)
    subscription = subscribe(server, "session", session)
    server.prompt(session, "many chunks")
    server.wait(session)
    up_to(server, subscription, head(server))
    assert list(joined(deltas(server, subscription)).values()) == ["x" * 5000]
    assert len(deltas(server, subscription)) < 200, "pieces must be joined"


@pytest.mark.parametrize("how", ["subscription", "client", "catalog", "approvals"])
def test_nobody_gets_deltas_who_did_not_ask_for_them(start, work, how):
    options = {"capabilities": {"approvals": False, "deltas": how != "client"}, "config": ALLOW}
    server = start(callboard=options)
    session = server.create(work)
    if how == "subscription":
        subscribe(server, "session", session, deltas=False)
    else:
        subscribe(server, how if how in ("catalog", "approvals") else "all")
    server.prompt(session, "print it")
    server.wait(session)
    server.call("server/ping")
    assert not any(m.get("method") == "event/delta" for m in server.seen)


def test_what_streamed_before_a_client_came_is_in_the_draft(server, work):
    """A hole before the first delta that a late client gets: the draft fills it."""
    session = server.create(work)
    early = subscribe(server, "session", session)
    server.prompt(session, "slow")
    while sum(d["count"] for d in deltas(server, early)) < 6:
        server.receive()
    late = subscribe(server, "session", session)
    while not deltas(server, late):
        server.receive()
    first = deltas(server, late)[0]
    assert first["index"] > 0
    draft = None
    while draft is None or draft["nextIndex"].get("answer", 0) < first["index"]:
        draft = server.call("session/get", sessionId=session).get("draft")
    assert draft["messageId"] == first["messageId"]
    pieces = deltas(server, late)
    until = draft["nextIndex"]["answer"]
    assert not [p for p in pieces if p["index"] < until < p["index"] + p["count"]]
    rest = "".join(p["text"] for p in pieces if p["index"] >= until)
    text = draft["answer"] + rest
    assert text and text == ("abcdefgh" * 4000)[: len(text)]
    server.call("session/cancel", sessionId=session)
    server.wait(session)
    assert server.call("session/get", sessionId=session).get("draft") is None


# --- windows ----------------------------------------------------------------------------------------


def titles(server: ServerProcess, session: str, count: int) -> None:
    """`count` further events of a session."""
    for id in [
        server.request("session/update", sessionId=session, title=f"title {n}")
        for n in range(count)
    ]:
        server.result(id)


def test_a_client_that_never_acknowledges_gets_a_window_and_no_more(start, work):
    server = start(environ={"CALLBOARD_LIMITS_WINDOW": "10"})
    limits = server.hello["capabilities"]["experimental"]["callboard"]["limits"]
    assert limits["window"] == 10
    session = server.create(work)
    titles(server, session, 24)
    subscription = subscribe(server, "session", session, maxBatch=7, **{"from": "start"})
    up_to(server, subscription, 10)
    titles(server, session, 20)
    server.call("server/ping")
    assert [e["seq"] for e in got(server, subscription)] == list(range(1, 11))
    assert not any(b["caughtUp"] for b in batches(server, subscription))
    cursor = batches(server, subscription)[-1]["cursor"]
    server.notify("event/ack", subscriptionId=subscription, cursor=cursor)
    up_to(server, subscription, 20)
    server.call("server/ping")
    assert [e["seq"] for e in got(server, subscription)] == list(range(1, 21))
    while not batches(server, subscription)[-1]["caughtUp"]:
        cursor = batches(server, subscription)[-1]["cursor"]
        server.notify("event/ack", subscriptionId=subscription, cursor=cursor)
        reached = position(cursor)
        up_to(server, subscription, reached + 1)
    assert [e["seq"] for e in got(server, subscription)] == list(range(1, 46))


def reset_of(server) -> dict[str, Any]:
    """What a client is told whose subscription has ended; it may have come with the answer to something else."""
    seen = (m for m in server.seen if m.get("method") == "event/reset")
    found = next(seen, None) or server.until(lambda m: m.get("method") == "event/reset")
    return found["params"]


def test_a_client_that_is_hopelessly_behind_is_told_and_loses_nothing(start, work):
    server = start(environ={"CALLBOARD_LIMITS_WINDOW": "5"})
    session = server.create(work)
    subscription = subscribe(server, "all", **{"from": "start"})
    titles(server, session, 120)
    params = reset_of(server)
    assert params["subscriptionId"] == subscription and params["reason"] == "slow"
    events = got(server, subscription)
    assert len(events) <= 5 and position(params["resumeFrom"]) == events[-1]["pos"]
    titles(server, session, 3)
    server.call("server/ping")
    assert got(server, subscription) == events, "the subscription is over"
    cursor = params["resumeFrom"]
    while position(cursor) < head(server):
        again = subscribe(server, "all", **{"from": cursor})
        server.until(lambda m, s=again: bool(events_of(m, s)))
        events += got(server, again)
        cursor = batches(server, again)[-1]["cursor"]
        server.call("event/unsubscribe", subscriptionId=again)
    assert events == everything(server)


@pytest.mark.parametrize("kind", ["session", "tree"])
def test_a_full_window_is_no_reason_to_end_what_little_waits_behind_it(start, work, kind):
    """What happens in other sessions is nothing that this client would ever be sent."""
    server = start(environ={"CALLBOARD_LIMITS_WINDOW": "3"})
    quiet, busy = server.create(work), server.create(work)
    titles(server, quiet, 4)
    subscription = subscribe(server, kind, quiet, **{"from": "start"})
    server.until(lambda m: len(got(server, subscription)) == 3)
    titles(server, busy, 60)
    titles(server, quiet, 20)
    server.call("server/ping")
    assert len(got(server, subscription)) == 3
    while not batches(server, subscription)[-1]["caughtUp"]:
        cursor = batches(server, subscription)[-1]["cursor"]
        server.notify("event/ack", subscriptionId=subscription, cursor=cursor)
        up_to(server, subscription, position(cursor) + 1)
    assert [e["seq"] for e in got(server, subscription)] == list(range(1, 26))
    subscription = subscribe(server, kind, quiet, **{"from": "start"})
    titles(server, quiet, 10)
    assert reset_of(server)["subscriptionId"] == subscription


def test_many_large_events_are_cut_into_batches_of_bounded_size(server, work):
    """A page that ends by its size must not end the replay (a huge event behind a small one)."""
    session = server.create(work)
    for n in range(12):
        blocks = [{"type": "text", "text": chr(97 + b) * 60_000} for b in range(5)]
        server.call("session/prompt", sessionId=session, content=blocks if n % 2 else blocks[:1])
        server.call("session/update", sessionId=session, title=f"t{n}")
    server.call("session/cancel", sessionId=session, scope="tree")
    server.wait(session)
    whole = everything(server)
    fresh = CheckedServer(server.folder, model="scripted/demo", client_id="fresh")
    with fresh:
        for client in (server, fresh):
            subscription = subscribe(client, "all", **{"from": "start"})
            assert up_to(client, subscription, whole[-1]["pos"])[: len(whole)] == whole
            assert max(len(json.dumps(b)) for b in batches(client, subscription)) < 800_000


# --- those who stop reading ---------------------------------------------------------------------------


class Deaf(ServerProcess):
    """A client that can stop reading."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self.listening = threading.Event()
        self.listening.set()
        super().__init__(*args, **more)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._inbox.put(json.loads(line))
            self.listening.wait()
        self._inbox.put(None)


def test_a_client_that_stops_reading_stops_nobody_else(start, work):
    deaf = start(
        Deaf, callboard={"capabilities": {"approvals": False, "deltas": True}, "config": ALLOW}
    )
    other = start(client_id="other")
    session = deaf.create(work)
    subscribe(deaf, "all")
    before = deaf.call("server/diagnostics")["memoryBytes"]
    theirs = subscribe(other, "session", session)
    deaf.listening.clear()
    deaf.request("server/ping")
    for n in range(40):
        content = [
            {"type": "text", "text": f"many chunks {n}"},
            {"type": "text", "text": "y" * 60_000},
        ]
        deaf.request("session/prompt", sessionId=session, content=content)
        deaf.request("session/export", sessionId=session)
    # its turns go on: the other process sees them all end
    own = other.create(work)
    other.prompt(own, "hello")
    assert other.wait(own)["reason"] == "idle"
    admitted: set[int] = set()
    while len(admitted) < 40:
        for event in events_of(other.receive(), theirs):
            if event["type"] == "ack":
                admitted.update(event["data"]["admits"])
                cursor = f"{other.call('server/info')['storeId']}.{event['pos']}"
                other.notify("event/ack", subscriptionId=theirs, cursor=cursor)
        for message in other.seen:
            for event in events_of(message, theirs):
                if event["type"] == "ack":
                    admitted.update(event["data"]["admits"])
    deaf.listening.set()
    deaf.call("server/ping")
    assert deaf.wait(session)["reason"] == "idle"
    grown = deaf.call("server/diagnostics")["memoryBytes"] - before
    assert grown < 120 * 1024 * 1024, grown
    for message in deaf.seen:
        for event in events_of(message):
            check_event(event)


# --- what never travels --------------------------------------------------------------------------------


def test_a_secret_is_in_no_event_and_no_delta(start, work):
    secret = base64.b64decode(b"c2stYW50LWFwaTAzLWFiY2RlZmdoaWprbG1ub3BxcnN0").decode()
    server = start(
        model=scenario(work, f"default: [{{say: {{text: 'it is {secret}.', chunk: 0}}}}]")
    )
    session = server.create(work)
    subscribe(server, "session", session)
    server.prompt(session, f"what is {secret}?")
    server.wait(session)
    server.call("session/export", sessionId=session)
    assert deltas(server, server.seen and subscribe(server)) == []
    assert secret not in json.dumps(server.seen) and "redacted:anthropic_key" in json.dumps(
        server.seen
    )
