"""What is imported is what was exported: event for event, and as context, and to be found."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from callboard.host import Host
from callboard_rpc.errors import CallboardError
from harness.exports import lines_of, recounted, sealed
from harness.inside import CLIENT, host_in, idle, new_session, say
from harness.process import scenario

pytestmark = pytest.mark.anyio

SCENARIO = """
rules:
  - when: {last_user: {regex: "^work"}, step: 0}
    answer:
      - think: How shall I begin?
      - say: I look, then I write.
      - call: {tool: read_file, arguments: {path: there.txt}}
      - call: {tool: write_file, arguments: {path: made.txt, content: "made"}}
      - usage: {input_tokens: 900, output_tokens: 30, cost: 0.5}
  - when: {last_user: {regex: "^work"}, step: 1}
    answer:
      - call: {tool: run_command, arguments: {command: "seq 1 60000"}}
  - when: {last_user: {regex: "^plan"}, step: 0}
    answer:
      - call: {tool: update_plan, arguments: {entries: [{content: "a step"}]}}
  - when: {last_user: {regex: "wait for ever$"}}
    answer: [{say: I begin}, {hang: true}]
  - when: {last_user: ask me, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: asked.txt, content: x}}
default:
  - say: "You said: {{last_user}}."
  - usage: {input_tokens: 1200, output_tokens: 34}
"""
ALLOW = '[approvals.policy]\nexecute = "allow"\nwrite = "allow"\n'


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "there.txt").write_text("platypus and wombat\n" * 3)
    return folder


@asynccontextmanager
async def store(tmp_path: Path, name: str, *, config: str = ALLOW) -> AsyncGenerator[Host]:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config" / "config.toml").write_text(config, "utf-8")
    async with host_in(folder, model=scenario(tmp_path, SCENARIO)) as host:
        yield host


async def text_of(host: Host, session_id: str, *, limit: int = 100) -> str:
    text, cursor = "", None
    while True:
        piece = await host.writing_out.piece(session_id, cursor=cursor, limit=limit)
        text += piece.text
        cursor = piece.cursor
        if cursor is None:
            return text


def bare(records: list[Any]) -> list[tuple[Any, ...]]:
    """Records without what belongs to a store."""
    return [
        (r.session_id, r.seq, r.event_id, r.type, r.at, r.actor, r.turn_id, r.data) for r in records
    ]


async def everything(host: Host) -> dict[str, Any]:
    """All that a store holds, for the comparison of before and after."""
    tables = await host.log.query(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'search%' "
        "AND name NOT IN ('sqlite_sequence', 'hosts')"
    )
    return {name: await host.log.query(f"SELECT * FROM {name}") for (name,) in tables}


async def rich_session(host: Host, work: Path) -> str:
    """Reasoning, calls, a blob, a large text, a plan, a summary, settings, a rewind."""
    session_id = await new_session(host, work, metadata={"a": [1, {"b": None}]})
    for words in ("work\x1b[31m on it 🦆", "plan", "y" * 200_000, "a fourth one", "a last one"):
        await say(host, session_id, words)
        await idle(host, session_id)
    await host.sessions.update(
        session_id, by=CLIENT, title="A title", pinned=True, metadata={"x": 1}, mode="ask",
        model="scripted/other",
    )  # fmt: skip
    await host.sessions.update(
        session_id, by=CLIENT, title="A title", pinned=True, metadata={"x": 1}, mode="work", model=None
    )  # fmt: skip
    await host.compacting.compact(session_id, by=CLIENT, instructions=None)
    await say(host, session_id, "after the summary")
    await idle(host, session_id)
    return session_id


async def test_an_imported_session_is_equal_event_for_event_in_blobs_context_search_and_usage(
    tmp_path: Path, work: Path
) -> None:
    async with store(tmp_path, "a") as source, store(tmp_path, "b") as target:
        session_id = await rich_session(source, work)
        text = await text_of(source, session_id)
        assert await text_of(source, session_id, limit=1) == text
        imported = await target.importing.run(text)
        assert (imported.session_id, imported.exported_id, imported.added) == (
            session_id,
            session_id,
            0,
        )
        ours, theirs = await source.log.session(session_id), await target.log.session(session_id)
        assert bare(theirs) == bare(ours)
        assert imported.events == len(ours)
        assert {r.fence for r in theirs} == {0}
        blobs = "SELECT b.blob_id, mime_type, data FROM blobs b JOIN blob_refs USING (blob_id) ORDER BY 1"
        assert await target.log.query(blobs) == await source.log.query(blobs)
        assert len(await target.log.query(blobs)) >= 2
        for table in ("turns", "triggers", "open_calls", "approvals", "receipts"):
            columns = "*" if table != "approvals" else "approval_id, state, request, resolution"
            query = f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3"
            assert await target.log.query(query) == await source.log.query(query), table
        for mode in ("replay", "audit"):
            context = (await target.cache.transcript(session_id)).messages(mode)
            assert context == (await source.cache.transcript(session_id)).messages(mode)
        assert (
            [h.record.seq for h in await target.log.search("wombat", limit=9)]
            == [h.record.seq for h in await source.log.search("wombat", limit=9)]
            != []
        )
        await target.log.index_all()
        assert await target.log.search("wombat", limit=9)
        assert await target.usage.of(session_id) == await source.usage.of(session_id)
        assert await text_of(target, session_id) == text
        before = await everything(target)
        await target.log.rebuild()
        assert await everything(target) == before


async def test_an_imported_session_goes_on_like_any_other(tmp_path: Path, work: Path) -> None:
    async with store(tmp_path, "a") as source, store(tmp_path, "b") as target:
        session_id = await rich_session(source, work)
        await target.importing.run(await text_of(source, session_id))
        head = (await target.log.session(session_id))[-1].seq
        await say(target, session_id, "and now?")
        waited = await idle(target, session_id)
        assert waited.turn.final_text == "You said: and now?."
        more = await target.log.session(session_id, after_seq=head)
        assert [r.seq for r in more] == list(range(head + 1, head + 1 + len(more)))
        assert all(r.fence for r in more if r.turn_id)


async def test_what_a_fork_has_inherited_is_imported_too(tmp_path: Path, work: Path) -> None:
    async with store(tmp_path, "a") as source, store(tmp_path, "b") as target:
        session_id = await rich_session(source, work)
        turns, _ = await source.reading.turns(session_id)
        fork = await source.forking.fork(
            session_id, at_turn_id=turns[2].turn_id, title=None, by=CLIENT
        )
        await say(source, fork.session_id, "in the fork")
        await idle(source, fork.session_id)
        await source.rewinding.rewind(session_id, before_turn_id=turns[1].turn_id, by=CLIENT)
        for each in (session_id, fork.session_id):
            text = await text_of(source, each)
            await target.importing.run(text)
            assert bare(await target.log.session(each)) == bare(await source.log.session(each))
            context = (await target.cache.transcript(each)).messages("replay")
            assert context == (await source.cache.transcript(each)).messages("replay")
            assert await target.usage.of(each) == await source.usage.of(each)


async def test_a_copy_has_ids_of_its_own_and_leaves_the_first_one_alone(
    tmp_path: Path, work: Path
) -> None:
    async with store(tmp_path, "a") as host:
        session_id = await rich_session(host, work)
        text = await text_of(host, session_id)
        before = bare(await host.log.session(session_id))
        other = tmp_path / "elsewhere"
        other.mkdir()
        imported = await host.importing.run(text, as_new=True, folder=str(other))
        assert imported.session_id != session_id == imported.exported_id
        assert bare(await host.log.session(session_id)) == before
        copy = await host.log.session(imported.session_id)
        assert [r.type for r in copy] == [r[3] for r in before]
        assert [r.at for r in copy] == [r[4] for r in before]
        assert not {r.event_id for r in copy} & {r[2] for r in before}
        assert copy[0].value.cwd == str(other)
        assert session_id not in "".join(r.data for r in copy)
        context = (await host.cache.transcript(imported.session_id)).messages("audit")
        assert context == (await host.cache.transcript(session_id)).messages("audit")
        turns, _ = await host.reading.turns(imported.session_id)
        first, _ = await host.reading.turns(session_id)
        assert [t.state for t in turns] == [t.state for t in first]
        assert not {t.turn_id for t in turns} & {t.turn_id for t in first}
        # and a copy of the copy is one, too
        again = await host.importing.run(await text_of(host, imported.session_id), as_new=True)
        assert again.events == imported.events


async def test_a_session_that_is_there_or_was_deleted(tmp_path: Path, work: Path) -> None:
    async with store(tmp_path, "a") as host:
        session_id = await rich_session(host, work)
        text = await text_of(host, session_id)
        before = await everything(host)
        with pytest.raises(CallboardError, match="new session") as refused:
            await host.importing.run(text)
        assert refused.value.kind == "sessionExists"
        assert await everything(host) == before
        events = bare(await host.log.session(session_id))
        for _ in range(2):
            await host.sessions.delete(session_id, by=CLIENT)
            with pytest.raises(CallboardError):
                await host.reading.session(session_id)
            await host.importing.run(text)
            assert bare(await host.log.session(session_id)) == events
            assert (await host.cache.state(session_id)).title == "A title"
        assert await text_of(host, session_id) == text
        # whoever follows the store, and was away meanwhile, is still told of the end
        assert (
            await host.log.query("SELECT count(*) FROM events WHERE type = 'session_deleted'")
        ) == [(1,)]
        assert await host.log.query("SELECT * FROM deletions") == []
        await say(host, session_id, "once more")
        assert (await idle(host, session_id)).reason == "idle"


async def test_a_running_turn_is_interrupted_and_its_queue_waits_for_somebody(
    tmp_path: Path, work: Path
) -> None:
    async with store(tmp_path, "a") as source:
        session_id = await new_session(source, work)
        with source.log.watching(session_id) as moved:
            await say(source, session_id, "wait for ever")
            await say(source, session_id, "queued one", delivery="queue")
            await say(source, session_id, "queued two", delivery="queue")
            while "turn_started" not in [r.type for r in await source.log.session(session_id)]:
                await moved.wait()
                moved.clear()
        text = await text_of(source, session_id)
        theirs = bare(await source.log.session(session_id))
    async with store(tmp_path, "b") as target:
        imported = await target.importing.run(text)
        records = await target.log.session(session_id)
        assert bare(records)[: imported.events] == theirs
        assert [r.type for r in records[imported.events :]] == ["turn_finished"]
        end = records[-1].value
        assert (end.outcome, end.usage.partial) == ("interrupted", True)
        session = await target.reading.session(session_id)
        assert (session.status, session.queue_length) == ("idle", 2)
        assert (await idle(target, session_id)).reason == "idle"
        assert target.dispatcher.running == 0
    async with store(tmp_path, "b") as target:  # nor does a start of the server wake it
        assert await target.dispatcher.wake(session_id) is None
        assert (await target.reading.session(session_id)).queue_length == 2
        assert len(await target.log.session(session_id)) == len(records)
        await say(target, session_id, "go on")
        waited = await idle(target, session_id)
        assert waited.turn.final_text.endswith("go on.")
        admitted = [r.value.admits for r in await target.log.session(session_id) if r.type == "ack"]
        assert len(admitted[-1]) == 3
        assert (await target.reading.session(session_id)).queue_length == 0


async def test_a_pending_approval_is_cancelled_and_its_call_is_not_run(
    tmp_path: Path, work: Path
) -> None:
    async with store(tmp_path, "a", config="") as source:
        session_id = await new_session(source, work)
        await say(source, session_id, "ask me")
        await source.waiting.wait(session_id, until="attention", turn_id=None, timeout_s=30)
        text = await text_of(source, session_id)
    async with store(tmp_path, "b", config="") as target:
        imported = await target.importing.run(text)
        added = (await target.log.session(session_id))[imported.events :]
        assert [r.type for r in added] == ["tool_result", "approval_decision", "turn_finished"]
        assert added[0].value.status == "interrupted"
        assert added[1].value.resolution.outcome == "cancelled"
        assert await target.approvals.page(state="pending") == ([], None)
        approval_id = added[1].value.approval_id
        with pytest.raises(CallboardError) as late:
            await target.approvals.answer(approval_id, "allow_once", by=CLIENT, via="method")
        assert late.value.kind == "alreadyResolved"
        assert not (work / "asked.txt").exists()
        assert (await target.reading.session(session_id)).status == "idle"


async def test_a_parked_turn_is_ended_wherever_it_was_exported(tmp_path: Path, work: Path) -> None:
    async with store(tmp_path, "a", config="") as source:
        session_id = await new_session(source, work)
        await say(source, session_id, "ask me")
        await source.waiting.wait(session_id, until="attention", turn_id=None, timeout_s=30)
    async with store(tmp_path, "a", config="") as source:
        assert (await source.reading.session(session_id)).status == "parked"
        text = await text_of(source, session_id)
    async with store(tmp_path, "b", config="") as target:
        await target.importing.run(text)
        session = await target.reading.session(session_id)
        assert (session.status, session.last_outcome) == ("idle", "interrupted")
        assert session.pending_approvals == 0
        # and it can be exported and imported once more, now at rest
        again = await text_of(target, session_id)
        copy = await target.importing.run(again, as_new=True)
        assert copy.added == 0


async def test_answers_in_a_file_are_no_rules_and_folders_in_it_are_asked_about(
    tmp_path: Path, work: Path
) -> None:
    async with store(tmp_path, "a", config="") as source:
        session_id = await new_session(source, work)
        await say(source, session_id, "ask me")
        waited = await source.waiting.wait(
            session_id, until="attention", turn_id=None, timeout_s=30
        )
        await source.approvals.answer(
            waited.approvals[0].approval_id, "allow_session", by=CLIENT, via="method"
        )
        await idle(source, session_id)
        assert (await source.approvals.rules())[0]
        text = await text_of(source, session_id)
    async with store(tmp_path, "b", config="") as target:
        await target.importing.run(text)
        assert await target.approvals.rules() == ([], None)
        await say(target, session_id, "work")
        waited = await target.waiting.wait(
            session_id, until="attention", turn_id=None, timeout_s=30
        )
        assert [a.tool for a in waited.approvals] == ["read_file", "write_file"]
        await target.sessions.cancel(session_id, by=CLIENT)
        await idle(target, session_id)
        # whoever makes a session of their own there has said that it may be read
        await new_session(target, work)
        await say(target, session_id, "work")
        waited = await target.waiting.wait(
            session_id, until="attention", turn_id=None, timeout_s=30
        )
        assert [a.tool for a in waited.approvals] == ["write_file"]


async def test_a_child_comes_only_under_a_parent_that_was_imported(
    tmp_path: Path, work: Path
) -> None:
    async with store(tmp_path, "a") as source, store(tmp_path, "b") as target:
        root, child = await new_session(source, work), await new_session(source, work)
        lines = lines_of(await text_of(source, child))
        lines[1]["data"].update(rootId=root, parentId=root, depth=1)
        text = sealed(recounted(lines))
        with pytest.raises(CallboardError, match="import that one first"):
            await source.importing.run(sealed(lines_of(text.replace(child, child[:-2] + "zz"))))
        with pytest.raises(CallboardError, match="import that one first"):
            await target.importing.run(text)
        await target.importing.run(await text_of(source, root))
        await target.importing.run(text)
        usage = await target.usage.of(root)
        assert [each.session_id for each in usage.sessions] == [root, child]
        with pytest.raises(CallboardError, match="child of another session"):
            await target.importing.run(text, as_new=True)


async def test_secrets_are_taken_out_again_also_out_of_blobs(tmp_path: Path, work: Path) -> None:
    secret = "sk-proj-" + "a1B2" * 10
    (tmp_path / "b").mkdir()
    async with store(tmp_path, "a") as source:
        session_id = await rich_session(source, work)
        lines = lines_of(await text_of(source, session_id))
    for value in lines:
        if value.get("type") == "message" and value["data"]["author"]["kind"] == "person":
            value["data"]["content"][0]["text"] += f" {secret}"
            value["actor"]["name"] = secret
    blob = next(value["blob"] for value in lines if "blob" in value)
    assert blob["offset"] == 0
    async with store(tmp_path, "b") as target:
        await target.importing.run(sealed(lines))
        held = "".join(str(row) for rows in (await everything(target)).values() for row in rows)
        assert secret not in held
        assert "[redacted:openai_key]" in held


async def test_imports_of_one_session_at_the_same_time_make_it_once(
    tmp_path: Path, work: Path
) -> None:
    async with store(tmp_path, "a") as source, store(tmp_path, "b") as one:
        session_id = await rich_session(source, work)
        text = await text_of(source, session_id)
        async with store(tmp_path, "b") as other:
            outcomes = await asyncio.gather(
                *(host.importing.run(text) for host in (one, other, one)), return_exceptions=True
            )
        kinds = sorted(getattr(each, "kind", "imported") for each in outcomes)
        assert kinds == ["imported", "sessionExists", "sessionExists"]
        assert bare(await one.log.session(session_id)) == bare(await source.log.session(session_id))


async def test_a_message_id_that_was_used_before_the_export_is_known_afterwards(
    tmp_path: Path, work: Path
) -> None:
    async with store(tmp_path, "a") as source, store(tmp_path, "b") as target:
        session_id = await new_session(source, work)
        await say(source, session_id, "hello", client_message_id="m1")
        await idle(source, session_id)
        await target.importing.run(await text_of(source, session_id))
        head = len(await target.log.session(session_id))
        again = await say(target, session_id, "hello", client_message_id="m1")
        assert again.record.seq == 2
        assert len(await target.log.session(session_id)) == head
