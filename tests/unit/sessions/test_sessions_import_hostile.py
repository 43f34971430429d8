"""Files that are none, were cut off or changed, or were made to do harm: each is refused by its line, and
the store is as it was."""

import asyncio
import base64
import copy
import errno
import hashlib
import io
import json
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from callboard.host import Host
from callboard.models.base import AssistantMessage, ToolUse
from callboard.sessions import transfer
from callboard.sessions.transcript import Transcript
from callboard_rpc.errors import CallboardError
from harness.exports import Lines, event_of, lines_of, long_session, recounted, sealed
from harness.inside import CLIENT, host_in, idle, new_session, say, until

pytestmark = pytest.mark.anyio

SES, TRN, CALL, APR = "ses_01hostile", "trn_01", "call_01", "apr_01"
BLOB = b"what a command printed\n" * 10
BLOB_ID = f"blob_{hashlib.sha256(BLOB).hexdigest()}"
AT = "2031-05-17T09:30:00.123Z"
AGENT = {"kind": "agent", "id": SES, "name": "default"}
PERSON = {"kind": "client", "id": "tests"}


def small() -> Lines:
    """A session with one turn, which has a call, an approval and a blob."""
    said = {"kind": "agent", "name": "default", "id": SES}
    approval = {
        "approvalId": APR, "sessionId": SES, "rootId": SES, "turnId": TRN, "callId": CALL,
        "kind": "permission", "title": "Run ls", "tool": "run_command", "createdAt": AT,
        "subject": {"command": "ls", "cwd": "/", "type": "command"},
        "options": [{"optionId": "allow_always", "name": "Always", "kind": "allow_always"}],
        "state": "pending", "path": [], "risk": "low",
    }  # fmt: skip
    resolution = {
        "outcome": "allowed", "by": PERSON, "via": "method", "at": AT, "optionId": "allow_always",
        "ruleId": "rule_01",
    }  # fmt: skip
    events: list[tuple[str, Any, dict[str, Any]]] = [
        ("session_created", PERSON, {
            "sessionId": SES, "cwd": "/nowhere", "rootId": SES, "profile": "default", "mode": "work"}),
        ("message", PERSON, {
            "messageId": "msg_01", "author": {"kind": "person", "name": "me"}, "delivery": "queue",
            "content": [{"text": "look", "type": "text"}], "clientMessageId": "m1"}),
        ("turn_started", AGENT, {
            "turnId": TRN, "index": 0, "trigger": {"kind": "prompt", "seqs": [2]}, "model": "a/b",
            "mode": "work"}),
        ("ack", AGENT, {"admits": [2]}),
        ("message", AGENT, {
            "messageId": "msg_02", "author": said,
            "content": [{"callId": CALL, "type": "tool_use"}]}),
        ("tool_call", AGENT, {
            "callId": CALL, "messageId": "msg_02", "name": "run_command",
            "arguments": {"command": "ls"}, "title": "Run ls", "approvalId": APR}),
        ("approval_request", AGENT, {"approval": approval}),
        ("approval_decision", PERSON, {
            "approvalId": APR, "callId": CALL, "resolution": resolution}),
        ("tool_result", AGENT, {
            "callId": CALL, "name": "run_command", "status": "ok", "text": "printed",
            "blob": {"blobId": BLOB_ID, "bytes": len(BLOB), "mimeType": "text/plain"}}),
        ("turn_finished", AGENT, {
            "turnId": TRN, "outcome": "completed", "answeredThrough": 2,
            "usage": {"requests": 1, "inputTokens": 5, "outputTokens": 1}}),
    ]  # fmt: skip
    lines: Lines = [{"callboard": {"export": 1, "sessionId": SES, "events": len(events)}}]
    for seq, (kind, actor, data) in enumerate(events, 1):
        if kind == "tool_result":
            piece = base64.b64encode(BLOB).decode()
            lines.append(
                {"blob": {"blobId": BLOB_ID, "mimeType": "text/plain", "size": len(BLOB),
                          "offset": 0, "data": piece}}
            )  # fmt: skip
        event = {
            "sessionId": SES, "seq": seq, "eventId": f"evt_{seq:02}", "type": kind, "at": AT,
            "actor": actor, "data": data,
        }  # fmt: skip
        lines.append(event if seq < 3 else {**event, "turnId": TRN})
    lines.append({"end": {}})
    return copy.deepcopy(lines)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
async def host(folder: Path) -> AsyncGenerator[Host]:
    async with host_in(folder) as host:
        yield host


async def state_of(host: Host) -> dict[str, Any]:
    tables = await host.log.query(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'search%' "
        "AND name NOT IN ('hosts')"
    )
    return {name: await host.log.query(f"SELECT * FROM {name}") for (name,) in tables}


async def refused(host: Host, text: str, kind: str = "importRefused") -> CallboardError:
    """The refusal of an import, which leaves nothing behind."""
    before = await state_of(host)
    with pytest.raises(CallboardError) as error:
        await host.importing.run(text)
    assert error.value.kind == kind, error.value
    assert await state_of(host) == before
    if kind == "importRefused":
        assert error.value.message.startswith(f"line {error.value.data['line']} ")
        assert error.value.message.endswith("Nothing was imported")
        assert len(error.value.message) < 600
    return error.value


async def test_the_file_that_the_others_are_made_from_is_a_good_one(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        imported = await host.importing.run(sealed(small()))
        assert (imported.session_id, imported.events, imported.added) == (SES, 10, 0)
        assert (await host.log.read_blob(BLOB_ID))[0] == BLOB
        assert await host.approvals.rules() == ([], None)


async def test_a_place_whose_call_an_older_server_left_out_is_taken_and_is_no_context(
    tmp_path: Path,
) -> None:
    """Answers of more than 128 calls were kept so once; a session must not be stranded by it."""
    lines = small()
    said = [line for line in lines if line.get("type") == "message"][-1]
    said["data"]["content"].append({"callId": "call_left_out", "type": "tool_use"})
    async with host_in(tmp_path) as host:
        imported = await host.importing.run(sealed(lines))
        transcript = Transcript.of(await host.log.session(imported.session_id))
        uses = [
            block.call_id
            for message in transcript.messages("replay")
            if isinstance(message, AssistantMessage)
            for block in message.blocks
            if isinstance(block, ToolUse)
        ]
        assert uses == [CALL]


def _set(kind: str, **changes: Any) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        event_of(lines, kind).update(changes)

    return change


def _data(kind: str, **changes: Any) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        event_of(lines, kind)["data"].update(changes)

    return change


def _approval(**changes: Any) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        event_of(lines, "approval_request")["data"]["approval"].update(changes)

    return change


def _without(kind: str) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        lines.remove(event_of(lines, kind))
        recounted(lines)

    return change


def _twice(kind: str, **changes: Any) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        again = copy.deepcopy(event_of(lines, kind))
        again["eventId"] = "evt_again"
        again["data"].update(changes)
        lines.insert(lines.index(event_of(lines, kind)) + 1, again)
        recounted(lines)

    return change


def _blob(**changes: Any) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        next(line["blob"] for line in lines if "blob" in line).update(changes)

    return change


def _header(**changes: Any) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        lines[0]["callboard"].update(changes)

    return change


def _append(value: dict[str, Any]) -> Callable[[Lines], None]:
    return lambda lines: lines.append(value)


def _deep(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


BAD: dict[str, tuple[Callable[[Lines], None], int, str]] = {
    # the first line
    "no header": (lambda lines: lines.pop(0), 1, "does not say that this is an exported session"),
    "a newer form": (_header(export=2), 1, "update Callboard"),
    "a form of no version": (_header(export="1"), 1, "no version"),
    "a header without a session": (_header(sessionId=None), 1, "must name the session"),
    "a header with more": (_header(more=1), 1, "nothing else"),
    "a session's id that is a path": (_header(sessionId="../../etc"), 1, "must name the session"),
    "more events than it says": (_header(events=5), 7, "more than the first line says"),
    "fewer events than it says": (_header(events=11), 13, "some are missing"),
    "two headers": (lambda lines: lines.insert(1, lines[0]), 2, "another session"),
    # envelopes
    "another session's event": (_set("ack", sessionId="ses_02"), 5, "another session"),
    "a seq too many": (_set("ack", seq=5), 5, "out of order"),
    "a seq twice": (_set("ack", seq=3), 5, "out of order"),
    "a seq that is true": (_set("session_created", seq=True), 2, "out of order"),
    "a seq that is text": (_set("ack", seq="4"), 5, "out of order"),
    "an event id twice": (_set("ack", eventId="evt_01"), 5, "repeats the id"),
    "an event id that is none": (_set("ack", eventId="a b"), 5, "no event's id"),
    "a type nobody knows": (_set("ack", type="ack_2"), 5, "update Callboard"),
    "a type that is no text": (_set("ack", type=["ack"]), 5, "update Callboard"),
    "a deletion": (_set("turn_finished", type="session_deleted", data={}), 12, "does not know"),
    "a time that is none": (_set("ack", at="yesterday"), 5, "no time"),
    "an impossible time": (_set("ack", at="2031-13-45T09:30:00Z"), 5, "no time"),
    "an actor without an id": (_set("ack", actor={"kind": "client"}), 5, "actor"),
    "an actor of no kind": (_set("ack", actor={"kind": "root", "id": "x"}), 5, "actor.kind"),
    "a field of the envelope that is unknown": (_set("ack", pos=4), 5, "unknown field 'pos'"),
    "data that is no object": (_set("ack", data=[1]), 5, "no object in 'data'"),
    "no data": (lambda lines: event_of(lines, "ack").pop("data"), 5, "no object in 'data'"),
    # data
    "a field that is unknown": (_data("tool_call", sudo=True), 7, "data.sudo"),
    "blobs of others by reference": (
        _data("tool_result", _blobs={"/text": {"blobId": BLOB_ID, "bytes": 1}}), 11, "data._blobs"),
    "a mode that is none": (_data("turn_started", mode="root"), 4, "data.mode"),
    "a seq that is far too large": (_data("ack", admits=[2**63]), 5, "64 bits"),
    "usage below zero": (_data("turn_finished", usage={"requests": -1}), 12, "impossible number"),
    "usage that no sum can hold": (
        _data("turn_finished", usage={"requests": 2**62}), 12, "impossible number"),
    "arguments nested without end": (_data("tool_call", arguments=_deep(400)), 7, "too deeply"),
    "another session's creation": (_data("session_created", sessionId="ses_02"), 2, "another"),
    "a root that is not its own": (_data("session_created", rootId="ses_02"), 2, "parent"),
    "a depth without a parent": (_data("session_created", depth=1), 2, "parent"),
    "a depth beyond all": (
        _data("session_created", depth=99, parentId="ses_02", rootId="ses_02"), 2, "depth"),
    # order
    "no creation": (_without("session_created"), 2, "the session's creation"),
    "two creations": (_twice("session_created"), 3, "only as the first"),
    "a turn that began already": (_twice("turn_started"), 5, "has not ended"),
    "a turn of the same id": (
        lambda lines: lines.insert(-1, {**copy.deepcopy(event_of(lines, "turn_started")),
                                        "seq": 11, "eventId": "evt_11"})
        or _header(events=11)(lines), 13, "began before"),
    "the end of another turn": (_data("turn_finished", turnId="trn_02"), 12, "not under way"),
    "an end twice": (_twice("turn_finished"), 13, "not under way"),
    "a turn that is none": (_set("ack", turnId="trn_02"), 5, "did not begin"),
    "a call outside of a turn": (_set("tool_call", turnId=None), 7, "not under way"),
    "a call twice": (_twice("tool_call"), 8, "used before"),
    "a result of no call": (_without("tool_call"), 7, "open call"),
    "a result of another call": (_data("tool_result", callId="call_02"), 11, "not in the file"),
    "a result twice": (_twice("tool_result"), 12, "has one already"),
    "a turn that ends with an open call": (_without("tool_result"), 11, "has no result"),
    "a turn that ends with an open approval": (_without("approval_decision"), 11, "no decision"),
    "an approval for another session": (_approval(sessionId="ses_02"), 8, "something else"),
    "an approval for another root": (_approval(rootId="ses_02"), 8, "something else"),
    "an approval for another turn": (_approval(turnId="trn_02"), 8, "something else"),
    "an approval for another call": (_approval(callId="call_02"), 8, "something else"),
    "an approval that was decided before": (_approval(state="resolved"), 8, "something else"),
    "an approval that expires at no time": (_approval(expiresAt="soon"), 8, "at no time"),
    "a decision of another approval": (
        _data("approval_decision", approvalId="apr_02"), 9, "not in the file"),
    "a decision twice": (_twice("approval_decision"), 10, "decided before"),
    "a turn resumed that was not parked": (
        lambda lines: event_of(lines, "ack").update(
            type="turn_resumed", data={"turnId": TRN, "trigger": {"kind": "approval"}}),
        5, "resumes one that is not"),
    "a fork that ends and did not begin": (
        lambda lines: event_of(lines, "ack").update(type="session_forked", data={
            "forkedFrom": {"sessionId": "ses_02", "turnId": TRN, "seq": 3}, "inherited": 2}),
        5, "did not begin"),
    "a change of the session that is unknown": (
        lambda lines: event_of(lines, "ack").update(
            type="session_updated", data={"changes": {"cwd": "/"}}), 5, "changes 'cwd'"),
    "a title that is no text": (
        lambda lines: event_of(lines, "ack").update(
            type="session_updated", data={"changes": {"title": 5}}), 5, "what it cannot be"),
    "a client's message id twice": (
        _twice("message", messageId="msg_09"), 4, "cannot be part of this session"),
    # blobs
    "a blob of other content": (
        _blob(data=base64.b64encode(BLOB.upper()).decode()), 10, "not what its id says"),
    "a blob of no id": (_blob(blobId="blob_x"), 10, "no blob's id"),
    "a blob that is not base64": (_blob(data="%%%"), 10, "not base64"),
    "a blob without its beginning": (_blob(offset=5), 10, "out of order"),
    "a blob larger than it says": (_blob(size=3), 10, "fit its size"),
    "a blob larger than all": (_blob(size=2**40), 10, "too large"),
    "a blob of nothing for ever": (_blob(data="", size=5), 10, "fit its size"),
    "half a blob": (_blob(data=base64.b64encode(BLOB[:9]).decode()), 11, "the rest of a blob"),
    "no blob": (
        lambda lines: lines.remove(next(line for line in lines if "blob" in line)), 10, "a blob that"),
    # the last line
    "no last line": (lambda lines: lines.pop(), 13, "cut off"),
    "something behind the last line": (_append({"more": 1}), 14, "follows the last line"),
    "a second session behind the first": (
        lambda lines: lines.append(lines[0]), 14, "follows the last line"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
async def test_a_file_with_this_is_refused_by_its_line(host: Host, what: str) -> None:
    change, line, why = BAD[what]
    lines = small()
    change(lines)
    error = await refused(host, sealed(lines))
    assert error.data["line"] == line, error
    assert why in error.message


async def test_a_file_that_was_changed_after_its_export_is_seen_by_its_digest(host: Host) -> None:
    text = sealed(small())
    for changed in (
        text.replace("printed", "PRINTED"),
        text.replace('"events":10,"digest":"', '"events":10,"digest":"' + "0" * 64 + '","x":"'),
    ):
        error = await refused(host, changed)
        assert "was changed" in error.message
    wrong_count = text.replace('{"end":{"events":10', '{"end":{"events":9')
    assert "some are missing" in (await refused(host, wrong_count)).message


async def test_a_file_that_was_cut_off_anywhere_is_refused(host: Host) -> None:
    text = sealed(small())
    cuts = {0, 1, len(text) // 2, len(text) - 2, *(n + 1 for n, c in enumerate(text) if c == "\n")}
    for cut in sorted(cuts - {len(text)}):
        error = await refused(host, text[:cut])
        assert error.data["line"] == text[:cut].count("\n") + 1


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "cut off"),
        (b"\n", "not JSON"),
        (b"hello\n", "not JSON"),
        (b"\xff\xfe{}\n", "not JSON"),
        (b"\xef\xbb\xbf{}\n", "not JSON"),
        (b"[1]\n", "not a JSON object"),
        (b"null\n", "not a JSON object"),
        (b'{"a":"\\ud800"}\n', "not JSON"),
        (b'{"a":NaN}\n', "not JSON"),
        (b"{" * 100_000 + b"\n", "not JSON"),
        (b'{"a":' * 2_000 + b"1" + b"}" * 2_000 + b"\n", "not JSON"),
        (b"# A title\n\nMarkdown\n", "not JSON"),
        (b"\x1f\x8b\x08\x00" + b"\x00" * 50, "not JSON"),
        (b"SQLite format 3\x00" + b"\x00" * 50, "not JSON"),
        (b"\x00" * 1_000, "not JSON"),
    ],
)  # fmt: skip
async def test_what_is_no_export_at_all_is_refused(
    host: Host, tmp_path: Path, raw: bytes, why: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(raw)
    before = await state_of(host)
    with pytest.raises(CallboardError) as error:
        await host.importing.run(host.importing.open(str(path)))
    assert error.value.data == {"line": 1}
    assert why in error.value.message
    assert await state_of(host) == before


async def test_a_line_without_an_end_is_not_read_to_it(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "LINE_LIMIT", 1_000)
    error = await refused(host, sealed(small())[:90] + "x" * 5_000)
    assert (error.data["line"], "is longer than" in error.message) == (2, True)


class _Failing(io.BytesIO):
    """A file on a disk that fails after its first line."""

    def readline(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().readline(-1 if size is None else size)


async def test_a_file_that_cannot_be_read_to_its_end_is_refused_by_name(host: Host) -> None:
    before = await state_of(host)
    with pytest.raises(CallboardError) as error:
        await host.importing.run(_Failing(sealed(small()).encode()))
    assert error.value.kind == "importRefused"
    assert "line 2 cannot be read (Input/output error)" in error.value.message
    assert await state_of(host) == before


async def test_no_error_repeats_what_stands_in_the_file(host: Host, tmp_path: Path) -> None:
    """The path may be that of any file which the server can read."""
    path = tmp_path / "secrets"
    path.write_text("hunter2 is the password\n" * 3)
    with pytest.raises(CallboardError) as error:
        await host.importing.run(host.importing.open(str(path)))
    assert "hunter2" not in error.value.message
    lines = small()
    event_of(lines, "turn_started")["data"]["mode"] = "hunter2"
    event_of(lines, "turn_started")["data"]["model"] = 5
    assert "hunter2" not in (await refused(host, sealed(lines))).message


async def test_paths_are_resolved_before_they_are_judged(host: Host, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/zero")
    store = tmp_path / "store"
    store.symlink_to(host.log.path)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, kind in (
        (link, "pathDenied"),
        (pipe, "pathDenied"),
        (tmp_path, "pathDenied"),
        (host.log.path, "pathDenied"),
        (store, "pathDenied"),
        (Path(f"{host.log.path}-wal"), "pathDenied"),
        (loop, "pathNotFound"),
        (tmp_path / "none", "pathNotFound"),
        (tmp_path / "none" / "below", "pathNotFound"),
    ):
        with pytest.raises(CallboardError) as error:
            host.importing.open(str(path))
        assert error.value.kind == kind, path
        assert error.value.data == {"path": str(path)}


async def test_ids_of_another_session_are_not_taken_from_it(tmp_path: Path) -> None:
    """A turn, a call or an approval that another session has: ended, answered or hung on by a file."""
    async with host_in(tmp_path) as host:
        victim = await new_session(host, tmp_path)
        await say(host, victim, "hello")
        await idle(host, victim)
        (turn,), _ = await host.reading.turns(victim)
        mine = sealed(lines_of(sealed(small()).replace(TRN, turn.turn_id)))
        error = await refused(host, mine, "sessionExists")
        assert turn.turn_id in error.message and "newId" in error.message
        assert await host.reading.turn(turn.turn_id) == turn
        imported = await host.importing.run(mine, as_new=True)
        assert imported.session_id != victim
        assert await host.reading.turn(turn.turn_id) == turn
        # the session itself, and one that is no child of whom it says
        lines = small()
        event_of(lines, "session_created")["data"].update(parentId=victim, rootId=victim, depth=1)
        event_of(lines, "approval_request")["data"]["approval"]["rootId"] = victim
        before = await state_of(host)
        with pytest.raises(CallboardError, match="not imported into this store"):
            await host.importing.run(sealed(lines))
        assert await state_of(host) == before


async def test_text_in_a_file_is_kept_as_text_whatever_it_holds(tmp_path: Path) -> None:
    hostile = "\x1b]0;x\x07\u202e\u0000\u2028 ' OR 1=1; -- <script> ${x} \U0001f986"
    lines = small()
    event_of(lines, "message")["data"]["content"][0]["text"] = hostile
    event_of(lines, "session_created")["data"]["title"] = hostile
    async with host_in(tmp_path) as host:
        await host.importing.run(sealed(lines))
        said = (await host.log.session(SES))[1].value
        assert said.content[0].text == hostile
        session = await host.reading.session(SES)
        assert session.title == hostile
        json.dumps(session.title).encode()


async def test_a_long_import_that_fails_on_its_way_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it has begun to be seen: whoever follows the store is told that it is gone."""
    text = long_session("ses_01long", "/nowhere", 1_200)
    async with host_in(tmp_path) as host:
        before = await state_of(host)
        real, calls = host.log.transact, 0

        async def transact(function: Any) -> Any:
            nonlocal calls
            calls += "publish_piece" in getattr(function, "__qualname__", "")
            if calls == 4:
                calls += 1
                raise CallboardError("storeFull", "the disk is full")
            return await real(function)

        heard: list[Any] = []
        host.log.listen(heard.extend)
        monkeypatch.setattr(host.log, "transact", transact)
        with pytest.raises(CallboardError, match="disk is full"):
            await host.importing.run(text)
        monkeypatch.undo()
        assert [r.type for r in heard][-1] == "session_deleted"
        assert len(heard) > 500
        after = await state_of(host)
        told = [row for row in after["events"] if row not in before["events"]]
        assert [row[4] for row in told] == ["session_deleted"]
        for name in ("sessions", "heads", "imports", "turns", "triggers", "blobs", "blob_refs"):
            assert after[name] == before[name], name
        # and it can come again, whole
        imported = await host.importing.run(text)
        assert imported.events == 1_200
        assert [r.seq for r in await host.log.session("ses_01long")] == list(range(1, 1_201))
        assert await host.log.query("SELECT * FROM deletions") == []
        with pytest.raises(CallboardError):
            await host.importing.run(text)


async def test_a_cancelled_import_is_taken_back(tmp_path: Path) -> None:
    text = long_session("ses_01long", "/nowhere", 2_000)
    async with host_in(tmp_path) as host:
        begun = asyncio.Event()
        host.log.listen(lambda _: begun.set())
        work = asyncio.create_task(host.importing.run(text))
        await asyncio.wait_for(begun.wait(), 30)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await until(
            host, lambda: host.log.query("SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM imports)")
        )
        assert await host.log.query("SELECT type FROM events") == [("session_deleted",)]
        assert (await host.importing.run(text)).events == 2_000
        await host.sessions.delete("ses_01long", by=CLIENT)
