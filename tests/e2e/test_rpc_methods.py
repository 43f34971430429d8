"""Every method of the table against the real server: what it gives, what it refuses, and how."""

import base64
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.checked import METHODS, SCHEMA, CheckedServer
from harness.process import RpcError, scenario, types

REQUESTS = sorted(
    name
    for name, row in METHODS.items()
    if row["direction"] == "clientToServer" and row["kind"] == "request"
)
SHOWN: set[str] = set()
"""Methods that a test of this module calls with success."""

SCENARIO = """
rules:
  - when: {last_user: write it, step: 0}
    answer: [{call: {tool: write_file, arguments: {path: note.txt, content: "hello\\n"}}}]
  - when: {last_user: print much, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "head -c 300000 /dev/zero | tr '\\\\0' x"}}}]
  - when: {last_user: {regex: "(?s)^Write the summary.*in verse"}}
    answer: [{fail: {kind: contextWindowExceeded, message: Too long for it}}]
  - when: {last_user: {regex: '(^|\\W)hang(\\W|$)'}}
    answer: [{say: I begin}, {hang: true}]
  - when: {last_user: {regex: ask the parent}, step: 0}
    answer: [{call: {tool: message, arguments: {to: parent, text: "May I?"}}}]
default:
  - think: A person speaks.
  - say: "You said {{last_user}}."
  - usage: {input_tokens: 10, output_tokens: 5, cost: 0.5}
"""


def shows(*methods: str) -> Callable[[Any], Any]:
    """Marks a test as the one that shows that methods work."""
    SHOWN.update(methods)
    return lambda test: test


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("methods")
    policy = {
        "approvals": {"policy": {"run_command": "allow"}},
        "features": ["agents.messaging", "peers"],
    }
    with CheckedServer(
        folder, model=scenario(folder, SCENARIO), callboard={"config": policy}
    ) as running:
        yield running


@pytest.fixture
def work(server):
    folder = server.folder / f"work-{uuid.uuid4().hex}"
    folder.mkdir()
    return folder


@pytest.fixture
def session(server, work):
    return server.create(work)


def refusal(server: CheckedServer, method: str, **params: Any) -> dict[str, Any]:
    """The error that a call is answered with."""
    with pytest.raises(RpcError) as raised:
        server.call(method, **params)
    return raised.value.error


def paths(error: dict[str, Any]) -> list[str]:
    assert error["data"]["kind"] == "invalidParams", error
    return [fault["path"] for fault in error["data"]["errors"]]


def asked(server: CheckedServer, session: str) -> dict[str, Any]:
    """A pending approval of the session."""
    server.prompt(session, "write it")
    waited = server.wait(session, "attention")
    assert waited["reason"] == "attention"
    return waited["approvals"][0]


# --- the table itself ------------------------------------------------------------------------------


def test_every_method_of_the_table_is_answered_by_a_handler(server):
    unanswered = []
    for name in REQUESTS:
        if name in ("initialize", "shutdown", "session/wait", "session/create"):
            continue
        try:
            server.call(name, **({"query": "x"} if name == "session/search" else {}))
        except RpcError as error:
            if error.kind == "methodNotFound":
                unanswered.append(name)
    assert unanswered == []


def test_every_request_of_the_table_has_a_test_that_shows_it():
    assert set(REQUESTS) - SHOWN == set()


def test_a_method_that_is_the_servers_own_cannot_be_called(server):
    assert refusal(server, "approval/request")["data"]["kind"] == "methodNotFound"
    assert refusal(server, "client/readFile")["data"]["kind"] == "methodNotFound"
    assert refusal(server, "session/nothing")["data"]["kind"] == "methodNotFound"


# --- wrong params, for all of them -------------------------------------------------------------------


def _definition(ref: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in ref:
        ref = SCHEMA["$defs"][ref["$ref"].rpartition("/")[2]]
    return ref


def _is_free(schema: dict[str, Any]) -> bool:
    schema = _definition(schema)
    return not ({"type", "anyOf", "oneOf", "enum", "const", "properties"} & set(schema))


def _wrong(schema: dict[str, Any]) -> Any:
    """A value that no field but a free one accepts: an array in an array, where arrays are wanted too."""
    text = json.dumps(_definition(schema))
    return 7.5 if '"array"' in text else [[]]


WELL_TYPED = {
    "string": "x",
    "integer": 1,
    "boolean": True,
    "object": {},
    "array": [],
    "number": 1.5,
}


def _fitting(schema: dict[str, Any]) -> Any:
    schema = _definition(schema)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _fitting(schema["anyOf"][0])
    if schema.get("type") == "object" and "properties" in schema:
        return {n: _fitting(schema["properties"][n]) for n in schema.get("required", ())}
    return WELL_TYPED[schema.get("type", "object")]


WITH_FIELDS = [
    name
    for name in REQUESTS
    if name != "initialize" and SCHEMA["$defs"][METHODS[name]["params"]].get("properties")
]


@pytest.mark.parametrize("method", WITH_FIELDS)
def test_params_that_are_missing_or_of_a_wrong_type_are_named(server, method):
    definition = SCHEMA["$defs"][METHODS[method]["params"]]
    fields, required = definition["properties"], definition.get("required", [])
    if required:
        assert set(paths(refusal(server, method))) == {f"$.{name}" for name in required}
    fitting = {name: _fitting(fields[name]) for name in required}
    for name, schema in fields.items():
        if _is_free(schema) or method == "shutdown":
            continue
        error = refusal(server, method, **{**fitting, name: _wrong(schema)})
        assert any(path.startswith(f"$.{name}") for path in paths(error)), (name, error)


@pytest.mark.parametrize(
    "method",
    [
        n
        for n in WITH_FIELDS
        if "sessionId" in SCHEMA["$defs"][METHODS[n]["params"]].get("required", ())
    ],
)
@pytest.mark.parametrize("unknown", ["ses_none", "", "\u0000", "ses_" + "x" * 5_000, "' OR 1=1 --"])
def test_an_unknown_session_is_named_and_nothing_else_happens(server, method, unknown):
    definition = SCHEMA["$defs"][METHODS[method]["params"]]
    params = {name: _fitting(definition["properties"][name]) for name in definition["required"]}
    if method == "session/prompt":
        params["content"] = [{"type": "text", "text": "hello"}]
    params["sessionId"] = unknown
    if method == "session/delete":
        assert server.call(method, **params) == {}
        return
    error = refusal(server, method, **params)
    assert error["data"]["kind"] == "sessionNotFound"
    assert len(error["message"]) < 500


def test_other_unknown_ids_have_errors_of_their_own(server, session):
    def kind(method, **params):
        error = refusal(server, method, **params)
        assert len(error["message"]) < 500
        return error["data"]["kind"]

    long = "x" * 5_000
    assert kind("approval/get", approvalId=long) == "approvalNotFound"
    assert kind("approval/ruleRemove", ruleId=long) == "ruleNotFound"
    assert kind("blob/read", blobId=long) == "blobNotFound"
    assert kind("session/cancel", sessionId=session, turnId=long) == "turnNotFound"
    assert kind("session/wait", sessionId=session, turnId=long) == "turnNotFound"
    assert kind("approval/get", approvalId="apr_none") == "approvalNotFound"
    assert kind("approval/answer", approvalId="apr_none", optionId="x") == "approvalNotFound"
    assert kind("approval/ruleRemove", ruleId="rule_none") == "ruleNotFound"
    assert kind("blob/read", blobId="blob_none") == "blobNotFound"
    assert kind("session/cancel", sessionId=session, turnId="trn_none") == "turnNotFound"
    assert kind("session/wait", sessionId=session, turnId="trn_none") == "turnNotFound"
    scope = {"kind": "session", "id": "ses_none"}
    assert kind("event/subscribe", scope=scope) == "sessionNotFound"
    assert kind("event/list", scope={"kind": "tree", "id": "ses_none"}) == "sessionNotFound"
    assert server.call("event/unsubscribe", subscriptionId="sub_none") == {}


LISTS = {
    "approval/list": {}, "approval/ruleList": {}, "model/list": {}, "profile/list": {},
    "session/list": {}, "session/search": {"query": "said"}, "session/turns": {"sessionId": None},
    "session/export": {"sessionId": None}, "event/list": {"scope": {"kind": "all"}},
    "agent/list": {"rootId": None}, "group/taskList": {"rootId": None},
    "group/messageList": {"rootId": None},
}  # fmt: skip


@pytest.mark.parametrize("method", sorted(LISTS))
def test_cursors_and_limits_of_every_list_are_checked(server, session, method):
    params = {k: session if v is None else v for k, v in LISTS[method].items()}
    name = "after" if method == "event/list" else "cursor"
    assert paths(refusal(server, method, **params, limit=0)) == ["$.limit"]
    assert paths(refusal(server, method, **params, limit=-5)) == ["$.limit"]
    server.call(method, **params, limit=2**63 - 1)
    if method == "approval/ruleList":
        return  # its cursor is an id, and any text has its place among them
    for cursor in ("", "x", "--5", "9" * 19, "1e3", "١٢", "store_other.5"):
        error = refusal(server, method, **params, **{name: cursor})
        assert error["data"]["kind"] == "invalidCursor", (cursor, error)


@pytest.mark.parametrize(
    "method", ["session/list", "session/turns", "event/list", "session/export"]
)
def test_pages_of_one_item_make_the_same_list(server, session, method):
    for n in range(3):
        server.prompt(session, f"page {n}")
    server.wait(session)
    params = {k: session if v is None else v for k, v in LISTS[method].items()}
    if method == "event/list":
        params = {"scope": {"kind": "session", "id": session}}
    name = "after" if method == "event/list" else "cursor"

    def everything(**more):
        out, cursor = [], {}
        while True:
            page = server.call(method, **params, **more, **cursor)
            out += [page["text"]] if method == "session/export" else page["data"]
            if page.get("nextCursor") is None:
                return out
            cursor = {name: page["nextCursor"]}

    one_by_one, whole = everything(limit=1), everything()
    if method == "session/export":
        one_by_one, whole = ["".join(one_by_one)], ["".join(whole)]
    assert one_by_one == whole and whole
    if method == "event/list":
        head = server.call(method, **params, limit=1)["cursor"]
        backwards, before = [], head
        while before is not None:
            page = server.call(method, **params, limit=2, before=before)
            backwards = page["data"] + backwards
            before = page.get("nextCursor")
        assert backwards == whole[: len(backwards)] and len(whole) - len(backwards) <= 1


# --- server, config, model, profile, blob ------------------------------------------------------------


@shows("initialize", "server/info", "server/ping", "server/diagnostics", "server/schema")
def test_the_server_tells_what_it_is(server):
    hello = server.hello["capabilities"]["experimental"]["callboard"]
    info = server.call("server/info")
    assert info["storeId"] == hello["storeId"] and info["hostId"] == hello["hostId"]
    assert info["pid"] == server.process.pid and info["model"].startswith("scripted/")
    assert hello["limits"] == {
        "maxFrameBytes": 32 * 1024 * 1024, "pageItems": 200, "pageBytes": 1024 * 1024, "window": 1000,
        "agentDepth": 1, "agentsOpen": 8, "agentsRunning": 4,
    }  # fmt: skip
    echo = {"jsonrpc": "2.0", "class": [1, {"_meta": None}], "from": "\u202e"}
    assert server.call("server/ping", echo=echo)["echo"] == echo
    found = server.call("server/diagnostics")
    assert found["memoryBytes"] > 0 and any(h["alive"] for h in found["hosts"])
    assert json.loads(server.call("server/schema")["text"]) == SCHEMA
    assert json.loads(server.call("server/schema", format="methods")["text"])["methods"] == METHODS
    assert "export" in server.call("server/schema", format="typescript")["text"]
    assert "---@class" in server.call("server/schema", format="lua")["text"]


@shows("config/get", "model/list", "profile/list")
def test_settings_models_and_profiles_are_listed_with_their_sources(server, work):
    values = {v["key"]: v for v in server.call("config/get")["values"]}
    assert values["model"]["source"] == "environment"
    assert values["approvals.policy.run_command"] == {
        "key": "approvals.policy.run_command", "value": "allow", "source": "client",
        **({"origin": o} if (o := values["approvals.policy.run_command"].get("origin")) else {}),
    }  # fmt: skip
    only = server.call("config/get", keys=["limits.queue"])["values"]
    assert [v["key"] for v in only] == ["limits.queue"] and only[0]["value"] == 200
    assert any(m["selected"] and m["available"] for m in server.call("model/list")["data"])
    names = [p["name"] for p in server.call("profile/list", cwd=str(work))["data"]]
    assert "default" in names
    for method in ("config/get", "profile/list"):
        for cwd in ("relative", "", "/a\u0000b", "/" + "x" * 10_000):
            assert paths(refusal(server, method, cwd=cwd)) == ["$.cwd"]


@shows("agent/probe")
def test_an_agent_is_tried_before_it_is_used(server, work):
    told = server.call("agent/probe", profile="default", cwd=str(work))
    assert (told["profile"], told["ok"], told["status"]) == ("default", True, "ready")
    assert refusal(server, "agent/probe", profile="none")["data"]["kind"] == "profileNotFound"
    assert paths(refusal(server, "agent/probe", profile="default", cwd="relative")) == ["$.cwd"]


@shows("blob/read")
def test_a_large_value_is_read_whole_in_pieces(server, session):
    server.prompt(session, "print much")
    server.wait(session)
    result = next(e for e in server.events(session) if e["type"] == "tool_result")
    blob = result["data"]["blob"]
    data, offset = b"", 0
    while True:
        piece = server.call("blob/read", blobId=blob["blobId"], offset=offset, length=100_000)
        data += base64.b64decode(piece["dataBase64"])
        offset = len(data)
        if piece["eof"]:
            break
    assert len(data) == blob["bytes"] == piece["size"] and data.count(b"x") == 300_000
    beyond = server.call("blob/read", blobId=blob["blobId"], offset=2**63 - 1)
    assert beyond["dataBase64"] == "" and beyond["eof"]
    assert paths(refusal(server, "blob/read", blobId=blob["blobId"], offset=-1)) == ["$.offset"]
    assert paths(refusal(server, "blob/read", blobId=blob["blobId"], length=-1)) == ["$.length"]


# --- sessions ------------------------------------------------------------------------------------------


@shows("session/create", "session/get", "session/list")
def test_a_session_is_made_found_and_listed(server, work):
    title = f"A  title\nof {uuid.uuid4().hex}"
    made = server.call(
        "session/create", cwd=f"{work}/", title=title, mode="ask", metadata={"a": [None, {"b": 1}]}
    )
    session = made["session"]
    assert session["title"] == " ".join(title.split()) and session["mode"] == "ask"
    assert session["cwd"] == str(work.resolve()) and session["metadata"] == {"a": [None, {"b": 1}]}
    assert session["status"] == "idle" and session["headSeq"] == 1 and not session["archived"]
    assert server.call("session/get", sessionId=session["sessionId"])["session"] == session
    for query in ({"query": title.rsplit(maxsplit=1)[-1]}, {"query": session["sessionId"]}):
        assert server.call("session/list", **query)["data"] == [session]
    listed = server.call("session/list", cwd=f"{work}/../{work.name}/", status="idle")["data"]
    assert listed[0] == session
    assert server.call("session/list", cwd=str(server.folder))["data"] == []
    assert server.call("session/list", parent=session["sessionId"])["data"] == []
    assert session not in server.call("session/list", status="running")["data"]
    assert server.call("session/list", query="100%_\\")["data"] == []


def test_a_session_needs_a_folder_a_profile_and_a_model_that_exist(server, work):
    (work / "file").write_text("x")
    kind = lambda **k: refusal(server, "session/create", **k)["data"]["kind"]  # noqa: E731
    assert paths(refusal(server, "session/create", cwd="relative")) == ["$.cwd"]
    assert paths(refusal(server, "session/create", cwd=f"{work}\u0000")) == ["$.cwd"]
    assert kind(cwd=str(work / "missing")) == "pathNotFound"
    assert kind(cwd=str(work / "file")) == "pathNotFound"
    assert kind(cwd=str(work), additionalDirectories=[str(work / "missing")]) == "pathNotFound"
    assert kind(cwd=str(work), profile="nobody") == "profileNotFound"
    unknown = refusal(server, "session/create", cwd=str(work), model="nowhere/nothing")
    assert unknown["data"]["kind"] == "modelUnavailable" and unknown["data"]["reason"]
    assert kind(cwd=str(work), members=["default", "nobody"]) == "profileNotFound"
    assert paths(refusal(server, "session/create", cwd=str(work), roster="none")) == ["$.roster"]


@shows("session/prompt", "session/wait", "session/turns")
def test_a_prompt_is_durable_answered_and_told_of(server, session):
    said = server.prompt(session, "good day", clientMessageId="m1")
    assert said["outcome"] == "started" and said["eventSeq"] == 2
    waited = server.wait(session, turnId=said["turnId"], until="turnEnd")
    assert waited["reason"] == "turnEnd" and waited["finalText"] == "You said good day."
    assert waited["turn"]["turnId"] == said["turnId"] and waited["turn"]["state"] == "completed"
    turns = server.call("session/turns", sessionId=session)["data"]
    assert turns == [waited["turn"]]
    assert turns[0]["trigger"]["seqs"] == [said["eventSeq"]]
    again = server.prompt(session, "good day", clientMessageId="m1")
    assert (again["eventSeq"], again["turnId"]) == (said["eventSeq"], said["turnId"])
    assert server.call("session/get", sessionId=session)["session"]["usage"]["inputTokens"] == 10


@shows("session/cancel")
def test_a_cancel_stops_the_turn_or_the_queue(server, session):
    assert server.call("session/cancel", sessionId=session)["state"] == "idle"
    turn = server.prompt(session, "hang")["turnId"]
    queued = server.prompt(session, "later")
    assert queued["outcome"] == "queued"
    dropped = server.call("session/cancel", sessionId=session, scope="queue")
    assert dropped["dropped"] == [queued["eventSeq"]]
    running = server.call("session/get", sessionId=session)["session"]
    assert running["status"] == "running" and running["activeTurnId"] == turn
    stopped = server.call("session/cancel", sessionId=session, turnId=turn, reason="enough")
    assert stopped == {"state": "cancelling", "turnId": turn, "dropped": []}
    assert server.wait(session)["turn"]["state"] == "cancelled"
    other = server.prompt(session, "hang")["turnId"]
    error = refusal(server, "session/cancel", sessionId=session, turnId=turn)
    assert error["data"]["kind"] == "turnMismatch" and error["data"]["actual"] == other
    server.call("session/cancel", sessionId=session, scope="tree")
    assert server.wait(session)["turn"]["turnId"] == other


@shows("session/update")
def test_an_update_changes_what_is_given_and_clears_what_is_null(server, session):
    update = lambda **k: server.call("session/update", sessionId=session, **k)["session"]  # noqa: E731
    changed = update(title="One", pinned=True, metadata={"x": 1}, mode="plan")
    assert (changed["title"], changed["pinned"], changed["mode"]) == ("One", True, "plan")
    same = update()
    assert same == changed
    cleared = update(title=None, metadata=None)
    assert cleared.get("title") is None and cleared.get("metadata") is None and cleared["pinned"]
    error = refusal(server, "session/update", sessionId=session, model="nowhere/nothing")
    assert error["data"]["kind"] == "modelUnavailable"
    assert paths(refusal(server, "session/update", sessionId=session, mode="root")) == ["$.mode"]
    assert update(model="scripted/demo")["model"] == "scripted/demo"
    assert update(model=None).get("model") is None


@shows("session/update")
def test_an_update_of_what_was_read_before_another_update_changes_nothing(server, session):
    update = lambda **k: server.call("session/update", sessionId=session, **k)["session"]  # noqa: E731
    read = server.call("session/get", sessionId=session)["session"]["headSeq"]
    first = update(metadata={"mine": 1}, ifUnchangedSince=read)
    error = refusal(
        server, "session/update", sessionId=session, metadata={"other": 1}, ifUnchangedSince=read
    )
    assert (error["data"]["kind"], error["data"]["seq"]) == ("sessionChanged", first["headSeq"])
    assert server.call("session/get", sessionId=session)["session"] == first
    server.prompt(session, "say hello")
    server.wait(session)
    both = update(metadata={"mine": 1, "other": 1}, ifUnchangedSince=first["headSeq"])
    assert both["metadata"] == {"mine": 1, "other": 1}


@shows("session/archive", "session/unarchive")
def test_an_archived_session_is_hidden_and_takes_no_prompts(server, session):
    archived = server.call("session/archive", sessionId=session)["session"]
    assert (
        archived["archived"]
        and server.call("session/archive", sessionId=session)["session"] == archived
    )
    assert session not in [s["sessionId"] for s in server.call("session/list")["data"]]
    assert server.call("session/list", archived=True, query=session)["data"] == [archived]
    text = [{"type": "text", "text": "hello"}]
    error = refusal(server, "session/prompt", sessionId=session, content=text)
    assert error["data"]["kind"] == "sessionArchived" and "unarchive" in error["message"]
    assert not server.call("session/unarchive", sessionId=session)["session"]["archived"]
    assert server.prompt(session, "hello")["outcome"] == "started"


@shows("session/close")
def test_a_closed_session_is_read_but_not_prompted(server, session):
    server.prompt(session, "hang")
    server.prompt(session, "later")
    closed = server.call("session/close", sessionId=session)["session"]
    assert closed["status"] == "closed" and closed["queueLength"] == 0
    assert server.call("session/close", sessionId=session)["session"] == closed
    kinds = types(server.events(session))
    assert kinds[-1] == "session_closed" and kinds.count("turn_started") == 1
    assert kinds.index("turn_finished") < kinds.index("session_closed")
    text = [{"type": "text", "text": "hello"}]
    error = refusal(server, "session/prompt", sessionId=session, content=text)
    assert error["data"]["kind"] == "sessionClosed"
    assert refusal(server, "session/compact", sessionId=session)["data"]["kind"] == "sessionClosed"
    assert server.wait(session)["reason"] == "closed"


@shows("session/delete")
def test_interrupts_76_a_deletion_stops_the_turn_first(server, session):
    server.prompt(session, "hang")
    server.prompt(session, "later")
    assert server.call("session/delete", sessionId=session) == {}
    assert refusal(server, "session/get", sessionId=session)["data"]["kind"] == "sessionNotFound"
    assert server.call("session/delete", sessionId=session) == {}
    leases = [lease["sessionId"] for lease in server.call("server/diagnostics")["leases"]]
    assert session not in leases


@shows("session/compact")
def test_a_long_session_is_summarised_by_command(server, session):
    assert not server.call("session/compact", sessionId=session)["compacted"]
    for n in range(12):
        server.prompt(session, f"message {n} " + "word " * 200)
        server.wait(session)
    failed = refusal(server, "session/compact", sessionId=session, instructions="Put it in verse.")
    assert (
        failed["data"]["kind"] == "contextWindowExceeded" and "Too long for it" in failed["message"]
    )
    assert "summary" not in types(server.events(session))
    done = server.call("session/compact", sessionId=session, instructions="Keep the numbers.")
    assert done["compacted"]
    summary = next(e for e in server.events(session) if e["type"] == "summary")
    assert summary["seq"] == done["summarySeq"] and summary["data"]["reason"] == "command"
    server.prompt(session, "hang")
    error = refusal(server, "session/compact", sessionId=session)
    assert error["data"]["kind"] == "turnInProgress" and error["data"]["retryable"]
    server.call("session/cancel", sessionId=session)
    server.wait(session)


@shows("session/rewind", "session/fork")
def test_a_session_goes_back_to_before_a_turn_and_a_fork_goes_on_from_there(server, session):
    for text in ("one", "write it"):
        server.prompt(session, text)
        approvals = server.wait(session, "attention")["approvals"]
        for approval in approvals:
            server.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
        server.wait(session)
    _, second = [t["turnId"] for t in server.call("session/turns", sessionId=session)["data"]]
    done = server.call("session/rewind", sessionId=session, beforeTurnId=second)
    assert (done["turns"], done["filesRestored"], done["commands"]) == (1, False, 0)
    assert [Path(path).name for path in done["changedPaths"]] == ["note.txt"]
    event = server.events(session)[done["eventSeq"] - 1]
    assert event["data"]["beforeSeq"] == done["beforeSeq"]
    assert server.wait(session)["finalText"] == "You said one."
    again = refusal(server, "session/rewind", sessionId=session, beforeTurnId=second)
    assert again["data"]["kind"] == "turnNotFound"
    made = server.call("session/fork", sessionId=session, atTurnId=second)["session"]
    assert made["forkedFrom"]["turnId"] == second
    said = [e for e in server.events(made["sessionId"]) if e["type"] == "tool_result"]
    assert [e["data"]["name"] for e in said] == ["write_file"]


@shows("session/queue", "session/queueUpdate", "session/queueRemove")
def test_prompts_that_wait_are_listed_page_by_page_changed_and_removed(server, session):
    server.prompt(session, "hang")
    seqs = [server.prompt(session, f"queued {n}")["eventSeq"] for n in range(3)]
    listed = []
    cursor = {}
    while True:
        page = server.call("session/queue", sessionId=session, limit=2, **cursor)
        listed += page["data"]
        if not page.get("nextCursor"):
            break
        cursor = {"cursor": page["nextCursor"]}
    assert [each["eventSeq"] for each in listed] == seqs
    other = [{"type": "text", "text": "other words"}]
    server.call("session/queueUpdate", sessionId=session, eventSeq=seqs[0], content=other)
    for seq in seqs[1:]:
        server.call("session/queueRemove", sessionId=session, eventSeq=seq, reason="no need")
    (left,) = server.call("session/queue", sessionId=session)["data"]
    assert (left["content"], left["eventSeq"]) == (other, seqs[0])
    error = refusal(server, "session/queueRemove", sessionId=session, eventSeq=seqs[1])
    assert error["data"]["kind"] == "promptNotFound"
    server.call("session/cancel", sessionId=session)
    assert server.wait(session)["finalText"] == "You said other words."
    error = refusal(
        server, "session/queueUpdate", sessionId=session, eventSeq=seqs[0], content=other
    )
    assert error["data"]["kind"] == "promptTaken"


@shows("session/search")
def test_a_search_finds_words_newest_first_in_one_session_or_folder(server, session, work):
    word = f"zebra{uuid.uuid4().hex}"
    for n in range(3):
        server.prompt(session, f"{word} number{n}")
        server.wait(session)
    hits = server.call("session/search", query=f"{word} said")["data"]
    assert [h["sessionId"] for h in hits] == [session] * 3
    assert [h["seq"] for h in hits] == sorted((h["seq"] for h in hits), reverse=True)
    assert len(server.call("session/search", query=word, sessionId=session)["data"]) == 6
    assert len(server.call("session/search", query=word, cwd=f"{work}/")["data"]) == 6
    assert server.call("session/search", query=word, cwd=str(server.folder))["data"] == []
    seen, cursor = [], {}
    while True:
        page = server.call("session/search", query=word, limit=4, **cursor)
        seen += [h["seq"] for h in page["data"]]
        if page.get("nextCursor") is None:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert len(seen) == 6 and seen == sorted(seen, reverse=True)
    for nothing in ("", '" OR NEAR(', "\u0000", "*"):
        assert server.call("session/search", query=nothing)["data"] == []


@shows("session/export")
def test_an_export_holds_everything_or_what_a_person_wants_to_read(server, session):
    server.prompt(session, "print much")
    server.wait(session)

    def export(form):
        text, cursor = "", {}
        while True:
            piece = server.call("session/export", sessionId=session, format=form, **cursor)
            assert len(piece["text"]) < 2_000_000
            text += piece["text"]
            if piece.get("nextCursor") is None:
                return text
            cursor = {"cursor": piece["nextCursor"]}

    first, *lines, last = [json.loads(line) for line in export("jsonl").splitlines()]
    lines = [line for line in lines if "blob" not in line]
    assert first["callboard"]["events"] == last["end"]["events"] == len(lines)
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert types(lines) == types(server.events(session))
    markdown = export("markdown")
    assert "## Person" in markdown and "print much" in markdown and "(run_command, " in markdown


@shows("session/import", "session/usage")
def test_an_export_is_imported_and_both_have_used_the_same(server, session):
    server.prompt(session, "hello")
    server.wait(session)
    piece = server.call("session/export", sessionId=session)
    assert piece.get("nextCursor") is None
    imported = server.call("session/import", content=piece["text"], newId=True)
    assert imported["exportedId"] == session
    copy = imported["session"]["sessionId"]
    used = [server.call("session/usage", sessionId=each, limit=1) for each in (session, copy)]
    assert used[0]["total"] == used[1]["total"]
    assert used[0]["total"]["runs"] == len(used[0]["runs"]) == 1
    assert (
        refusal(server, "session/import", content=piece["text"])["data"]["kind"] == "sessionExists"
    )


def test_a_page_ends_at_a_mebibyte_too(server, work):
    made = [
        server.create(work, metadata={str(n): "x" * 50_000 for n in range(8)}) for _ in range(7)
    ]
    found, cursor = [], {}
    while cursor is not None:
        page = server.call("session/list", cwd=str(work), **cursor)
        assert 1 <= len(page["data"]) <= 2 and len(json.dumps(page)) < 1_200_000
        found += [s["sessionId"] for s in page["data"]]
        cursor = {"cursor": page["nextCursor"]} if page.get("nextCursor") else None
    assert found == made[::-1]


def test_a_wait_tells_its_progress_to_whoever_gave_a_token(server, session):
    server.prompt(session, "hang")
    id = server.request("session/wait", sessionId=session, until="idle", workDoneToken="t1")
    server.until(
        lambda m: m.get("method") == "$/progress" and m["params"]["value"]["kind"] == "report"
    )
    server.call("session/cancel", sessionId=session)
    server.result(id)
    told = [m["params"] for m in server.seen if m.get("method") == "$/progress"]
    assert {t["token"] for t in told} == {"t1"}
    kinds = [t["value"]["kind"] for t in told]
    assert kinds[0] == "begin" and kinds[-1] == "end" and set(kinds[1:-1]) == {"report"}
    assert told[1]["value"]["message"] == "running"
    last = [m for m in server.seen if m.get("id") == id or m.get("method") == "$/progress"][-1]
    assert last.get("id") == id, "the end is told before the answer"


# --- events --------------------------------------------------------------------------------------------


@shows("event/subscribe", "event/unsubscribe", "event/list")
def test_a_subscription_begins_tells_and_ends(server, session):
    made = server.call("event/subscribe", scope={"kind": "session", "id": session})
    server.call("session/update", sessionId=session, title="x")
    event = server.find_event(lambda e: e["sessionId"] == session)
    assert event["type"] == "session_updated" and event["data"]["changes"] == {"title": "x"}
    server.notify("event/ack", subscriptionId=made["subscriptionId"], cursor=made["head"])
    assert server.call("event/unsubscribe", subscriptionId=made["subscriptionId"]) == {}
    server.call("session/update", sessionId=session, title="y")
    server.call("server/ping")
    late = [
        m for m in server.seen[-4:] if m.get("method") == "event/batch" and m["params"]["events"]
    ]
    assert late == []
    error = refusal(
        server, "event/list", scope={"kind": "all"}, after=made["head"], before=made["head"]
    )
    assert paths(error) == ["$.before"]
    assert paths(refusal(server, "event/list", scope={"kind": "session"})) == ["$.scope.id"]
    assert paths(refusal(server, "event/subscribe", scope={"kind": "galaxy"})) == ["$.scope.kind"]
    assert paths(refusal(server, "event/subscribe", scope={"kind": "all"}, maxBatch=0)) == [
        "$.maxBatch"
    ]
    types_ = server.call(
        "event/list", scope={"kind": "session", "id": session}, types=["session_created"]
    )["data"]
    assert types(types_) == ["session_created"]
    assert server.call("event/list", scope={"kind": "all"}, types=[])["data"] == []


# --- approvals -----------------------------------------------------------------------------------------


@shows("approval/list", "approval/get", "approval/answer")
def test_an_approval_is_listed_answered_once_and_kept(server, session, work):
    approval = asked(server, session)
    given = approval["approvalId"]
    assert server.call("approval/get", approvalId=given)["approval"] == approval
    assert server.call("approval/list", sessionId=session, state="pending")["data"] == [approval]
    assert (
        approval["subject"]["type"] == "fileChange"
        and "+hello" in approval["subject"]["changes"][0]["diff"]
    )
    invalid = refusal(server, "approval/answer", approvalId=given, optionId="nonsense")
    assert invalid["data"]["kind"] == "optionInvalid"
    assert invalid["data"]["options"] == [o["optionId"] for o in approval["options"]]
    once = next(o["optionId"] for o in approval["options"] if o["kind"] == "allow_once")
    answered = server.call("approval/answer", approvalId=given, optionId=once)["approval"]
    assert answered["state"] == "resolved" and answered["resolution"]["outcome"] == "allowed"
    assert (
        answered["resolution"]["by"]["id"] == "tests" and answered["resolution"]["via"] == "method"
    )
    late = refusal(server, "approval/answer", approvalId=given, optionId=once)
    assert late["data"]["kind"] == "alreadyResolved"
    assert late["data"]["resolution"] == answered["resolution"]
    server.wait(session)
    assert (work / "note.txt").read_text() == "hello\n"
    assert server.call("approval/list", sessionId=session, state="pending")["data"] == []


@shows("approval/ruleList", "approval/ruleAdd", "approval/ruleRemove")
def test_rules_are_added_listed_used_and_revoked(server, session, work):
    add = lambda **k: server.call("approval/ruleAdd", tool="write_file", **k)["rule"]  # noqa: E731
    rule = add(scope="session", effect="deny", sessionId=session)
    assert server.call("approval/ruleList", sessionId=session)["data"] == [rule]
    server.prompt(session, "write it")
    server.wait(session)
    result = next(e for e in server.events(session) if e["type"] == "tool_result")
    assert result["data"]["status"] == "denied"
    assert server.call("approval/ruleRemove", ruleId=rule["ruleId"])["rule"] == rule
    assert server.call("approval/ruleList", sessionId=session)["data"] == []
    scoped = add(scope="workspace", effect="deny", workspace=str(work))
    assert scoped in server.call("approval/ruleList", scope="workspace")["data"]
    server.call("approval/ruleRemove", ruleId=scoped["ruleId"])
    wrong = {"tool": "write_file", "effect": "allow"}
    assert paths(refusal(server, "approval/ruleAdd", scope="session", **wrong)) == ["$.sessionId"]
    assert paths(refusal(server, "approval/ruleAdd", scope="workspace", **wrong)) == ["$.workspace"]
    error = refusal(server, "approval/ruleAdd", scope="session", sessionId="ses_none", **wrong)
    assert error["data"]["kind"] == "sessionNotFound"


# --- the end -------------------------------------------------------------------------------------------


@shows("agent/list", "agent/spawn", "agent/send", "agent/continue", "agent/wait")
@shows("agent/interrupt", "agent/close", "agent/reply")
def test_an_agent_is_begun_spoken_to_waited_for_stopped_and_closed(server, session):
    made = server.call("agent/spawn", parentId=session, name="one", message="hang")["agent"]
    agent = {"agentId": made["agentId"]}
    server.call("agent/send", **agent, text="by the way")
    server.call("agent/continue", **agent, text="go on")
    waited = server.call("agent/wait", parentId=session, timeoutMs=0)
    assert [a["agentId"] for a in waited["agents"]] == [made["agentId"]]
    assert server.call("agent/interrupt", **agent, kind="abort")["outcome"] == "aborted"
    assert server.call("agent/close", **agent)["agent"]["status"] == "closed"
    (listed,) = server.call("agent/list", rootId=session)["data"]
    assert listed["agentId"] == made["agentId"]
    assert server.call("server/diagnostics")["queues"]["openAgents"] == 0
    server.call("agent/spawn", parentId=session, name="two", message="ask the parent")
    (asked,) = server.call("agent/wait", parentId=session)["questions"]
    assert server.call("agent/reply", askId=asked["askId"], text="Yes.")["askId"] == asked["askId"]
    assert server.call("server/diagnostics")["queues"]["openAgents"] == 1


@shows("group/get", "group/taskCreate", "group/taskList", "group/taskClaim", "group/taskStart")
@shows("group/taskComplete", "group/taskBlock", "group/taskRelease", "group/taskCancel")
@shows("group/taskReassign", "group/messageSend", "group/messageList")
def test_tasks_of_a_group_are_made_done_and_given_and_messages_are_left(server, session):
    of = {"rootId": session}

    def task(verb, task_id, **more):
        return server.call(f"group/task{verb}", **of, taskId=task_id, **more)["task"]["status"]

    one, two = (
        server.call("group/taskCreate", **of, title=title)["task"]["taskId"]
        for title in ("one", "two")
    )
    assert [task(verb, one) for verb in ("Claim", "Release", "Claim", "Start")] == [
        "claimed", "pending", "claimed", "in_progress",
    ]  # fmt: skip
    assert task("Complete", one, summary="did it") == "completed"
    assert [task("Claim", two), task("Block", two, reason="no key")] == ["claimed", "blocked"]
    assert [task("Reassign", two, agentId=session), task("Cancel", two)] == ["claimed", "cancelled"]
    server.call("group/messageSend", **of, to="group", text="done")
    assert server.call("group/get", **of)["group"]["counts"]["total"] == 2
    assert len(server.call("group/taskList", **of, status="all")["data"]) == 2
    assert server.call("group/messageList", **of)["data"] == []


@shows("session/members", "session/memberAdd", "session/memberRemove")
def test_agents_take_part_in_a_session_and_leave_it(server, session):
    alone = server.call("session/members", sessionId=session)["room"]
    assert alone["members"] == [] and alone["burst"] == {"used": 0, "budget": 6, "exhausted": False}
    added = server.call("session/memberAdd", sessionId=session, name="default", host=True)["room"]
    assert [(m["name"], m["isHost"]) for m in added["members"]] == [("default", True)]
    assert server.call("session/get", sessionId=session)["session"]["members"] == ["default"]
    left = server.call("session/memberRemove", sessionId=session, name="default")["room"]
    assert (left["members"], left.get("host")) == ([], None)
    error = refusal(server, "session/memberAdd", sessionId=session, name="nobody")
    assert error["data"]["kind"] == "profileNotFound"


@shows("schedule/create", "schedule/get", "schedule/list", "schedule/update", "schedule/delete")
@shows("schedule/runNow", "schedule/runs", "schedule/preview")
def test_a_schedule_is_made_changed_fired_and_deleted(server, session):
    yearly = {"cron": "0 0 29 2 *"}
    made = server.call(
        "schedule/create", profile="default", trigger=yearly, prompt="look", name="leap days",
        target={"sessionId": session},
    )["schedule"]  # fmt: skip
    assert made["nextAt"].endswith("-02-29T00:00:00.000Z")
    of = {"scheduleId": made["scheduleId"]}
    assert server.call("schedule/get", **of)["schedule"] == made
    assert server.call("schedule/list", sessionId=session)["data"] == [made]
    changed = server.call("schedule/update", **of, enabled=False)["schedule"]
    assert changed["enabled"] is False and "nextAt" not in changed
    fire = server.call("schedule/runNow", **of)["fire"]
    assert (fire["outcome"], fire["sessionId"]) == ("queued", session)
    server.wait(session)
    (run,) = server.call("schedule/runs", **of)["data"]
    assert (run["fireId"], run["outcome"]) == (fire["fireId"], "completed")
    assert run["usage"]["inputTokens"] == 10
    times = server.call("schedule/preview", trigger=yearly, count=2)["times"]
    assert times[0] == made["nextAt"] and len(times) == 2
    assert server.call("schedule/delete", **of)["deleted"] is True
    assert server.call("schedule/delete", **of)["deleted"] is False
    assert refusal(server, "schedule/get", **of)["data"]["kind"] == "scheduleNotFound"


@shows("peer/invite", "peer/accept", "peer/list", "peer/send", "peer/leave")
def test_two_sessions_are_linked_write_to_each_other_and_part(server, work):
    one, two = server.create(work), server.create(work)
    token = server.call("peer/invite", sessionId=one)["token"]
    assert server.call("peer/accept", sessionId=two, token=token)["peer"]["sessionId"] == one
    (peer,) = server.call("peer/list", sessionId=one)["peers"]
    assert (peer["sessionId"], peer.get("oneWay", False)) == (two, False)
    sent = server.call("peer/send", sessionId=two, to=one, text="the build is red")
    while not [
        e for e in server.events(one)
        if e["type"] == "message" and e["data"]["messageId"] == sent["messageId"]
    ]:  # fmt: skip
        server.wait(one)
    assert server.call("peer/leave", sessionId=one, peerId=two)["left"] is True
    assert server.call("peer/list", sessionId=two)["peers"] == []
    error = refusal(server, "peer/send", sessionId=two, to=one, text="are you there?")
    assert error["data"]["kind"] == "peerNotLinked"


@shows("shutdown")
def test_shutdown_then_exit_ends_with_zero(tmp_path):
    with CheckedServer(tmp_path, model="scripted/demo") as server:
        server.notify("initialized")
        assert server.call("shutdown") == {}
        assert refusal(server, "server/ping")["data"]["kind"] == "invalidRequest"
        server.notify("exit")
        assert server.process.wait(10) == 0


# --- keyed requests ------------------------------------------------------------------------------------

MUTATING = sorted(name for name, row in METHODS.items() if row["mutates"])


@pytest.mark.parametrize("method", MUTATING)
def test_every_mutating_method_takes_an_idempotency_key(method):
    assert "idempotencyKey" in SCHEMA["$defs"][METHODS[method]["params"]]["properties"]


def test_no_other_method_takes_an_idempotency_key():
    for name, row in METHODS.items():
        if not row["mutates"]:
            fields = SCHEMA["$defs"][row["params"]].get("properties", {})
            assert "idempotencyKey" not in fields, name
