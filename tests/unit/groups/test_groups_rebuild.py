"""No truth lives in the tables of groups: what is deleted of them is back with the next host, and what a group
has to do with other trees, copies and deleted sessions (coordination 86, 101, 103, 8.2)."""

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from agents_kit import Cast, troupe
from groups_kit import (
    Board,
    again,
    board,
    board_of,
    empty_all,
    messages_in,
    must_be_as_replayed,
    refused,
    tables,
)

from callboard.config.settings import Settings
from callboard.groups.anew import rebuild
from callboard.groups.projection import SQL as GROUP_SQL
from callboard.host import builtin_features, projections_of
from callboard.log import checking
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.sessions.telling import RunListeners
from harness.exports import lines_of, sealed
from harness.inside import CLIENT
from harness.puppets import of

pytestmark = pytest.mark.anyio


async def _used(b: Board) -> None:
    """Tasks in every status, messages that were read, and some that were not."""
    first = await b.task("first", description="how", expected_paths=("./A.py", "b\\c.py"))
    last = await b.task("last", dependencies=(first.task_id,), required=False)
    await b.complete(
        "one", await b.claim("one", first), summary="made", findings=("f",), touched_files=("x",)
    )
    await b.release("two", await b.claim("two", last))
    await b.block("two", await b.claim("two", await b.task("stuck")))
    await b.start("one", await b.claim("one", await b.task("under way")))
    await b.reassign("root", await b.task("given"), "two")
    await b.cancel("root", await b.task("not wanted"))
    await b.send("root", "one", "read 1")
    await b.send("two", "group", "read 2")
    await b.goes_on("one")
    await b.send("root", "group", "unread 1")
    await b.send("two", "one", "unread 2")


async def test_coordination_86_101_103_what_is_deleted_of_the_tables_is_back_with_the_next_host(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one", "two") as b:
        await _used(b)
        before, group = tables(b), await b.group()
        await must_be_as_replayed(b)
        await empty_all(b)
        assert await b.groups.reading.group(b.root) is None
    async with again(tmp_path, b) as b:
        assert tables(b) == before
        assert await b.group() == group
        await must_be_as_replayed(b)
        for name in ("one", "two", "root"):
            await b.goes_on(name)
            await b.goes_on(name)
        texts = {name: _said(await b.t.log(b.ids[name])) for name in b.ids}
        assert texts == {
            "one": ["read 1", "read 2", "unread 1", "unread 2"],
            "two": ["unread 1"],
            "root": ["read 2"],
        }


def _said(records: list[Any]) -> list[str]:
    return [text.split("\n")[1] for text in messages_in(records)]


ALTERED: tuple[tuple[str, str], ...] = (
    ("a task is another's", "UPDATE group_tasks SET assignee = 'ses_evil', status = 'claimed'"),
    ("a task too many", "INSERT INTO group_tasks SELECT root_id, 'tsk_evil', group_id, title, status, "
     "created_by, created_at, updated_at, description, dependencies, required, expected_paths, "
     "assignee, summary, reason, findings, touched_files FROM group_tasks LIMIT 1"),
    ("tasks too few", "DELETE FROM group_tasks WHERE status = 'pending'"),
    ("a member too many", "INSERT INTO group_members SELECT root_id, 'ses_evil', 1 FROM agent_groups"),
    ("another group", "UPDATE agent_groups SET group_id = 'grp_evil'"),
    ("no marker", "UPDATE group_message_deliveries SET delivered_seq = NULL"),
    ("a marker too many", "UPDATE group_message_deliveries SET delivered_seq = 1"),
    ("another text", "UPDATE group_messages SET text = 'evil'"),
    ("a group of nobody", "INSERT INTO agent_groups VALUES ('ses_evil', 'grp_evil', 'x', 'y')"),
)  # fmt: skip


@pytest.mark.parametrize("sql", [row[1] for row in ALTERED], ids=[row[0] for row in ALTERED])
async def test_coordination_86_what_was_altered_in_the_tables_is_as_the_log_says_again(
    tmp_path: Path, sql: str
) -> None:
    async with board(tmp_path, "one", "two") as b:
        await _used(b)
        before = tables(b)
        await b.t.host.log.transact(lambda tx: tx.execute(sql))
        assert tables(b) != before
    async with again(tmp_path, b) as b:
        assert tables(b) == before


async def test_coordination_86_a_rebuild_of_all_tables_says_the_same(tmp_path: Path) -> None:
    async with board(tmp_path, "one", "two") as b:
        await _used(b)
        before = tables(b)
        await b.t.host.log.rebuild()
        assert tables(b) == before


async def test_coordination_86_a_restart_alone_changes_nothing_and_writes_no_event_of_groups(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one", "two") as b:
        await _used(b)
        before, events = tables(b), await b.events()
    for _ in range(3):
        async with again(tmp_path, b) as b:
            assert tables(b) == before and await b.events() == events


async def test_coordination_86_tables_that_are_right_are_not_written_when_a_host_begins(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one", "two") as b:
        await _used(b)
        before = tables(b)
        for name in before:
            for change in ("DELETE", "INSERT"):
                sql = (
                    f"CREATE TRIGGER no_{change}_{name} BEFORE {change} ON {name} "
                    "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
                )
                await b.t.host.log.transact(lambda tx, sql=sql: tx.execute(sql))
    async with again(tmp_path, b) as b:
        with pytest.raises(Exception, match="the disk is full"):
            await b.t.host.log.transact(lambda tx: rebuild(tx, b.root))
        assert tables(b) == before


@pytest.mark.parametrize("data", ["{", "[]", '{"x": 1}'])
async def test_coordination_86_a_group_whose_log_cannot_be_read_keeps_nobody_from_being_served(
    tmp_path: Path, data: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with board(tmp_path, "one", "two") as b:
        await _used(b)
        other = await board_of(b.t)
        await other.task("theirs")
        before = tables(b)
        damage = "UPDATE events SET data = ? WHERE session_id = ? AND type = 'group_task_claimed'"
        await b.t.host.log.transact(lambda tx: tx.execute(damage, data, b.root))
        alter = "UPDATE group_tasks SET title = 'evil' WHERE root_id = ?"
        await b.t.host.log.transact(lambda tx: tx.execute(alter, other.root))
    async with again(tmp_path, b) as b:
        assert tables(b) == before
        told = [r.getMessage() for r in caplog.records if "made anew" in r.getMessage()]
        assert len(told) == 1 and b.root in told[0]


async def test_coordination_101_what_was_read_out_of_order_is_found_without_looking_through_the_rest(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one") as b:
        plan = "EXPLAIN QUERY PLAN " + GROUP_SQL["mark_delivered"]
        (row,) = b.t.host.log.glance(plan, 1, "root", "msg", "one")
        assert "(root_id=? AND message_id=? AND recipient_id=?)" in row[3]


# --- two trees in one store -----------------------------------------------------------------------


async def test_coordination_8_2_the_groups_of_two_roots_have_nothing_of_each_other(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, Cast()) as t:
        mine, theirs = await board_of(t, "one"), await board_of(t, "other")
        own, foreign = await mine.task("mine"), await theirs.task("theirs")
        foreign_id, other = foreign.task_id, theirs.ids["other"]
        for operation in ("claim", "start", "complete", "block", "release", "cancel", "reassign"):
            error = await refused(mine, mine.do(operation, "root", foreign_id, "one"))
            assert error.kind == "taskNotFound"
        error = await refused(mine, mine.task("x", dependencies=(foreign_id,)))
        assert (error.kind, error.data) == ("invalidGraph", {"reason": "unknown"})
        for stranger in (other, theirs.root):
            error = await refused(mine, mine.reassign("root", own, stranger))
            assert error.kind == "notAMember"
            doing = mine.groups.send(mine.who(), "agent", stranger, "psst")
            assert (await refused(mine, doing)).kind == "notAMember"
            error = await refused(mine, mine.groups.reading.inbox(mine.root, stranger))
            assert error.kind == "notAMember"
        error = await refused(mine, mine.seen(foreign_id))
        assert error.kind == "taskNotFound"
        assert (await mine.send("one", "group", "all")).recipients == (mine.root,)
        told = await mine.use(
            "one",
            ("group_task", {"op": "claim", "task_id": foreign_id}),
            ("group_message", {"op": "send", "to": "agent", "agent_id": other, "text": "psst"}),
            ("group_task", {"op": "list", "status": "all"}),
        )
        assert [text.partition(":")[0] for text in told[:2]] == ["unknown_task", "not_a_member"]
        assert "theirs" not in told[2] and "1 task," in told[2]
        assert (await theirs.group()).counts.pending == 1
        assert {g.group_id for g in (await mine.group(), await theirs.group())} == {
            own.group_id, foreign.group_id
        }  # fmt: skip
        for b in (mine, theirs):
            await must_be_as_replayed(b)


async def test_coordination_8_2_a_task_of_another_tree_is_given_to_no_child(tmp_path: Path) -> None:
    async with troupe(tmp_path, Cast()) as t:
        mine, theirs = await board_of(t), await board_of(t)
        foreign = await theirs.task("theirs")
        error = await refused(mine, t.spawn(mine.root, "thief", task_id=foreign.task_id))
        assert error.kind == "taskNotFound"


async def test_coordination_8_2_a_group_is_found_from_every_session_of_its_tree(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one") as b:
        await b.task()
        assert await b.groups.reading.group(b.ids["one"]) == await b.group()
        assert b.groups.person(b.ids["one"], CLIENT).agent_id == b.root


# --- what is gone, and what is a copy -------------------------------------------------------------


async def _exported(b: Board, session_id: str) -> str:
    text, cursor = "", None
    while True:
        piece = await b.t.host.writing_out.piece(session_id, cursor=cursor, limit=100)
        text += piece.text
        cursor = piece.cursor
        if cursor is None:
            return text


async def test_coordination_86_nothing_is_left_of_the_group_of_a_deleted_tree(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, Cast()) as t:
        gone, stays = await board_of(t, "one"), await board_of(t, "two")
        for b in (gone, stays):
            await b.task()
            await b.send("root", "group", "hello")
        before = [row for rows in tables(stays).values() for row in rows if stays.root in row]
        await t.host.sessions.close(gone.root, by=CLIENT, reason="over")
        await t.host.sessions.delete(gone.root, by=CLIENT)
        left = [row for rows in tables(stays).values() for row in rows]
        assert sorted(left, key=repr) == sorted(before, key=repr)
        assert not [row for row in left if gone.root in row]
    async with again(tmp_path, stays) as b:
        assert not [row for rows in tables(b).values() for row in rows if gone.root in row]
        assert sorted((row for rows in tables(b).values() for row in rows), key=repr) == sorted(
            before, key=repr
        )


async def test_coordination_8_2_a_fork_has_no_group_of_its_origin(tmp_path: Path) -> None:
    async with board(tmp_path, "one") as b:
        await b.use("root", ("group_task", {"op": "create", "title": "one"}))
        before = tables(b)
        fork = await b.t.host.forking.fork(b.root, at_turn_id=None, title=None, by=CLIENT)
        assert tables(b) == before
        assert await b.groups.reading.group(fork.session_id) is None
        assert of(await b.t.log(b.root), "agent_group_created")


async def test_coordination_8_2_nobody_changes_the_group_of_a_root_that_is_closed(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one") as b:
        task = await b.task()
        await b.t.host.sessions.close(b.root, by=CLIENT, reason="over")
        for doing in (b.task("more"), b.claim("one", task), b.send("root", "group", "x")):
            assert (await refused(b, doing)).kind == "sessionClosed"
        assert attrs.evolve(await b.seen(task)) == task


async def test_coordination_8_2_a_copy_of_a_root_says_nothing_to_agents_of_the_original(
    tmp_path: Path,
) -> None:
    """The agents that the copy's log names are no agents of its tree: nothing reaches them from there."""
    async with board(tmp_path, "one", "two") as b:
        await _used(b)
        task = await b.task("open")
        await b.goes_on("one")
        await b.goes_on("two")
        text = await _exported(b, b.root)
        heard = {name: _said(await b.t.log(b.ids[name])) for name in ("one", "two")}
        waits = b.t.host.log.glance(
            "SELECT recipient_id, message_id FROM group_message_deliveries WHERE delivered_seq IS NULL "
            "AND recipient_id IN (?, ?)", b.ids["one"], b.ids["two"],
        )  # fmt: skip
        assert waits == []
        done = await b.t.host.importing.run(text, as_new=True, folder=str(tmp_path))
        copy = Board(b.t, done.session_id, {"root": done.session_id})
        assert copy.root != b.root and (await copy.group()).counts == (await b.group()).counts
        # their own, whatever the copy's root says or does
        assert (await copy.send("root", "group", "to my own")).recipients == ()
        for stranger in (b.ids["one"], b.root):
            doing = copy.groups.send(copy.who(), "agent", stranger, "psst")
            assert (await refused(copy, doing)).kind == "notAMember"
            error = await refused(copy, copy.reassign("root", task, stranger))
            assert error.kind == "notAMember"
        for name in ("one", "two"):
            await b.goes_on(name)
            assert _said(await b.t.log(b.ids[name])) == heard[name]
        await copy.cancel("root", task)
        assert (await b.seen(task)).status == "pending"
        assert (await copy.seen(task)).status == "cancelled"
    async with again(tmp_path, b) as b:
        for name in ("one", "two"):
            await b.goes_on(name)
            assert _said(await b.t.log(b.ids[name])) == heard[name]


async def test_coordination_101_a_tree_that_moves_to_another_store_reads_only_what_it_had_not(
    tmp_path: Path,
) -> None:
    async with board(tmp_path / "a", "one", "two") as b:
        await _used(b)
        texts = [await _exported(b, b.ids[name]) for name in ("root", "one", "two")]
        before = await b.group()
    async with troupe(tmp_path / "b", b.t.cast) as t:
        for text in texts:
            await t.host.importing.run(text, folder=str(tmp_path))
        moved = Board(t, b.root, dict(b.ids))
        assert attrs.evolve(await moved.group(), members=before.members) == before
        for name in ("one", "two"):
            await moved.goes_on(name)
        assert _said(await t.log(b.ids["one"])) == ["read 1", "read 2", "unread 1", "unread 2"]
        assert _said(await t.log(b.ids["two"])) == ["unread 1"]
        await must_be_as_replayed(moved)
        rows = tables(moved)
    async with again(tmp_path / "b", moved) as moved:
        assert tables(moved) == rows


async def test_coordination_8_8_a_file_that_somebody_wrote_puts_no_words_into_other_sessions(
    tmp_path: Path,
) -> None:
    """Its log says that a stranger is a member, owns a task, and gets a message."""
    async with troupe(tmp_path, Cast()) as t:
        victim, source = await board_of(t, "one"), await board_of(t, "two")
        await source.claim("two", await source.task("bait"))
        await source.send("root", "two", "do as I say")
        lines = lines_of(await _exported(source, source.root))
        forged = sealed(json.loads(json.dumps(lines).replace(source.ids["two"], victim.ids["one"])))
        await t.host.sessions.close(source.root, by=CLIENT, reason="over")
        await t.host.sessions.delete(source.root, by=CLIENT)
        await t.host.importing.run(forged, folder=str(tmp_path))
        assert victim.ids["one"] in repr(await source.events("group_message_queued"))
        assert (await source.send("root", "group", "and this")).recipients == ()
        rows = t.host.log.glance("SELECT recipient_id, root_id FROM group_message_deliveries")
        assert (victim.ids["one"], source.root) not in rows
        await victim.goes_on("one")
        assert messages_in(await t.log(victim.ids["one"])) == []
        (member,) = (await source.group()).members[1:]
        assert (member.name, member.status) == (victim.ids["one"], None)
    async with again(tmp_path, victim) as b:
        await b.goes_on("one")
        assert messages_in(await b.t.log(b.ids["one"])) == []


# --- `callboard store check` ------------------------------------------------------------------------


def _found(folder: Path) -> list[str]:
    """Where a look through the store finds what the log does not tell."""
    projections = projections_of(RunListeners(), builtin_features(Settings()))
    path = folder / "store.db"
    report = checking.check(path, now=utc_now, ids=IdSource(), projections=projections)
    return [finding.message for finding in report.findings]


async def test_coordination_86_a_look_through_the_store_finds_a_group_that_is_not_as_the_log_says(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one", "two") as b:
        await _used(b)
    assert _found(tmp_path) == []
    async with again(tmp_path, b) as b:
        await b.t.host.log.transact(
            lambda tx: tx.execute("UPDATE group_tasks SET assignee = 'ses_evil'")
        )
    (found,) = _found(tmp_path)
    assert "group_tasks" in found


async def test_coordination_86_agents_that_are_elsewhere_or_gone_are_no_fault_of_the_tables(
    tmp_path: Path,
) -> None:
    async with board(tmp_path / "a", "one", "two") as b:
        await _used(b)
        texts = [await _exported(b, b.ids[name]) for name in ("root", "one", "two")]
        await b.t.host.sessions.delete(b.ids["two"], by=CLIENT)
        deleted = tables(b)
    async with again(tmp_path / "a", b) as b:
        assert tables(b) == deleted
    assert _found(tmp_path / "a") == []
    # a root that comes alone, and is served, before its agents come
    async with troupe(tmp_path / "b", b.t.cast) as t:
        await t.host.importing.run(texts[0], folder=str(tmp_path))
        alone = tables(Board(t, b.root, dict(b.ids)))
    async with again(tmp_path / "b", b) as b:
        assert tables(b) == alone
        for text in texts[1:]:
            await b.t.host.importing.run(text, folder=str(tmp_path))
        moved = tables(b)
        await b.goes_on("two")
        assert _said(await b.t.log(b.ids["two"])) == ["unread 1"]
    assert _found(tmp_path / "b") == []
    # the tree comes back to where it was deleted
    async with again(tmp_path / "a", b) as b:
        await b.t.host.sessions.delete(b.root, by=CLIENT)
        assert not any(tables(b).values())
        for text in texts:
            await b.t.host.importing.run(text, folder=str(tmp_path))
        back = tables(b)
        assert [len(rows) for rows in back.values()] == [len(rows) for rows in moved.values()]
    async with again(tmp_path / "a", b) as b:
        assert tables(b) == back
        await b.goes_on("one")
        assert _said(await b.t.log(b.ids["one"])) == ["read 1", "read 2", "unread 1", "unread 2"]
    assert _found(tmp_path / "a") == []
