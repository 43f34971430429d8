"""A group from a file: no more than a root could have written, so that no file makes every start slow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from callboard.groups.anew import is_right
from callboard.groups.service import Groups
from callboard.sessions import vetting_groups
from callboard_rpc.errors import CallboardError
from harness.exports import Lines, recounted, sealed
from harness.inside import host_in, log_of

pytestmark = pytest.mark.anyio

ROOT, ONE = "ses_01root", "ses_01agent"
AT = "2031-05-17T09:30:00.123Z"
Event = tuple[str, dict[str, Any]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def joined(agent_id: str = ONE, **more: Any) -> Event:
    return "agent_group_member_joined", {"groupId": "grp_1", "agentId": agent_id, **more}


def task(number: int, *after: str, **more: Any) -> Event:
    data = {
        "taskId": f"tsk_{number}", "groupId": "grp_1", "title": "a task", "createdBy": ROOT,
        "dependencies": list(after),
    }  # fmt: skip
    return "group_task_created", {**data, **more}


def claimed(number: int) -> Event:
    return "group_task_claimed", {"taskId": f"tsk_{number}", "agentId": ONE}


def queued(number: int, *recipients: str, **more: Any) -> Event:
    data = {
        "messageId": f"msg_{number}", "groupId": "grp_1", "sender": ONE, "to": "group",
        "recipients": list(recipients), "text": "hello",
    }  # fmt: skip
    return "group_message_queued", {**data, **more}


def delivered(number: int) -> Event:
    data = {"messageId": f"msg_{number}", "groupId": "grp_1", "sender": ONE}
    return "group_message_delivered", data


CREATED: Event = ("agent_group_created", {"groupId": "grp_1", "name": "house"})
GROUP = (
    CREATED, joined(), task(1), task(2, "tsk_1"), claimed(1), queued(1, ROOT, ONE), delivered(1),
    queued(2, ROOT), queued(3),
)  # fmt: skip


def file_of(events: Sequence[Event], first: Event | None = None) -> str:
    created = {
        "sessionId": ROOT, "cwd": "/nowhere", "rootId": ROOT, "profile": "default", "mode": "work",
    }  # fmt: skip
    beginning = first or ("session_created", created)
    session_id = (beginning[1].get("session") or beginning[1])["sessionId"]
    lines: Lines = [{"callboard": {"export": 1, "sessionId": session_id, "events": 0}}]
    for number, (kind, data) in enumerate((beginning, *events)):
        lines.append(
            {
                "sessionId": session_id, "seq": 0, "eventId": f"evt_{session_id[4:]}{number}",
                "type": kind, "at": AT, "actor": {"kind": "system", "id": "tests"}, "data": data,
            }
        )  # fmt: skip
    lines.append({"end": {}})
    return sealed(recounted(lines))


async def test_a_group_comes_with_its_root_and_its_tables_are_what_the_log_says(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        await host.importing.run(file_of(GROUP), folder=str(tmp_path))
        assert await host.log.at_once(lambda rows: is_right(rows, ROOT))
        groups = host.services["groups"]
        assert isinstance(groups, Groups)
        group = await groups.reading.group(ROOT)
        assert group is not None and (group.counts.total, group.counts.claimed) == (2, 1)
        inbox = await groups.reading.inbox(ROOT)
        assert [(m.message_id, m.seen) for m in inbox.messages] == [
            ("msg_2", False),
            ("msg_1", True),
        ]
        assert len(await log_of(host, ROOT)) == 1 + len(GROUP)


SPAWNED: Event = (
    "agent_spawned",
    {
        "session": {
            "sessionId": ONE, "rootId": ROOT, "parentId": ROOT, "cwd": "/nowhere", "depth": 1,
            "profile": "default", "mode": "work",
        },
        "name": "one",
        "depthLeft": 0,
    },
)  # fmt: skip
LONG = "x" * 64_001
WRONG: dict[str, tuple[tuple[Event, ...], str]] = {
    "two groups in a root": ((*GROUP, CREATED), "creates a second group"),
    "another group": ((*GROUP, ("agent_group_created", {"groupId": "grp_2", "name": "x"})), "second"),
    "a task before its group": ((task(1), CREATED), "a group that is not in the file"),
    "a member of another group": ((CREATED, joined(groupId="grp_2")), "a group that is not in the"),
    "a task of another group": ((CREATED, task(1, groupId="grp_2")), "a group that is not in the"),
    "a message of another group": ((CREATED, queued(1, groupId="grp_2")), "a group that is not in"),
    "a group without a name that can be told": (
        (("agent_group_created", {"groupId": "grp_1", "name": "x\nready: all"}),), "no name"),
    "a task of nobody": ((*GROUP, task(3, createdBy="\x1b[2J")), "names an agent"),
    "a claim of nobody": (
        (*GROUP, ("group_task_claimed", {"taskId": "tsk_1", "agentId": "a b"})), "names an agent"),
    "a task given to nobody": (
        (*GROUP, ("group_task_status_changed", {
            "taskId": "tsk_1", "status": "claimed", "agentId": ONE, "assignee": "\u202e"})),
        "names an agent",
    ),
    "a message of nobody": ((*GROUP, queued(4, ROOT, sender="root\n")), "names an agent"),
    "a member twice": ((*GROUP, joined()), "who is one already"),
    "the root as a member": ((*GROUP, joined(ROOT)), "who is one already"),
    "a member whose id is none": ((CREATED, joined("\x1b[2J")), "whose id is none"),
    "a group whose id is none": ((("agent_group_created", {"groupId": "", "name": "x"}),), "id is"),
    "a task twice": ((*GROUP, task(1)), "used before"),
    "a task whose id is none": ((*GROUP, task(3, taskId="tsk_a\n[completed] all")), "id is none"),
    "an unknown dependency": ((*GROUP, task(3, "tsk_9")), "depends on one that is not"),
    "a task that depends on itself": ((*GROUP, task(3, "tsk_3")), "depends on one that is not"),
    "a cycle": ((CREATED, task(1, "tsk_2"), task(2, "tsk_1")), "depends on one that is not"),
    "a dependency twice": ((*GROUP, task(3, "tsk_1", "tsk_1")), "another one twice"),
    "too many paths": ((*GROUP, task(3, expectedPaths=["x"] * 201)), "more than 200 entries"),
    "a long path": ((*GROUP, task(3, expectedPaths=[LONG])), "more than 64,000 characters"),
    "a long title": ((*GROUP, task(3, title=LONG)), "more than 64,000 characters"),
    "a claim of nothing": ((*GROUP, claimed(9)), "a task that is not in the file"),
    "many findings": (
        (*GROUP, ("group_task_status_changed", {
            "taskId": "tsk_1", "status": "completed", "agentId": ONE, "findings": ["x"] * 201})),
        "more than 200 entries",
    ),
    "a message twice": ((*GROUP, queued(1, ROOT)), "used before"),
    "a message for a stranger": ((*GROUP, queued(4, "ses_victim")), "no member of the group"),
    "a message for one twice": ((*GROUP, queued(4, ONE, ONE)), "the same member twice"),
    "a long message": ((*GROUP, queued(4, ROOT, text="x" * 16_001)), "more than 16,000 characters"),
    "a delivery before its message": ((CREATED, delivered(1), queued(1, ROOT)), "not in the file"),
    "a delivery of another's message": ((CREATED, joined(), queued(1, ONE), delivered(1)), "not in"),
    "a delivery twice": ((*GROUP, delivered(1)), "delivered before"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
async def test_a_group_that_no_root_has_written_is_refused_by_its_line(
    tmp_path: Path, name: str
) -> None:
    events, why = WRONG[name]
    async with host_in(tmp_path) as host:
        with pytest.raises(CallboardError) as refused:
            await host.importing.run(file_of(events), folder=str(tmp_path))
        assert refused.value.kind == "importRefused"
        assert why in refused.value.message, refused.value.message
        assert host.log.glance("SELECT count(*) FROM events") == [(0,)]


@pytest.mark.parametrize("event", [*GROUP[:6]], ids=[kind for kind, _ in GROUP[:6]])
async def test_a_group_in_the_log_of_an_agent_is_refused(tmp_path: Path, event: Event) -> None:
    async with host_in(tmp_path) as host:
        await host.importing.run(file_of(GROUP), folder=str(tmp_path))
        for events in ((event,), (delivered(1), event)):
            with pytest.raises(CallboardError, match="in the session of an agent") as refused:
                await host.importing.run(file_of(events, SPAWNED), folder=str(tmp_path))
            assert refused.value.kind == "importRefused"
        await host.importing.run(file_of([delivered(1)], SPAWNED), folder=str(tmp_path))
        assert await host.log.at_once(lambda rows: is_right(rows, ROOT))


LIMITS: dict[str, tuple[str, tuple[Event, ...], str]] = {
    "tasks": ("MAX_TASKS", (task(3),), "a task more than the 2"),
    "messages": ("MAX_MESSAGES", (queued(4),), "a message more than the 2"),
    "deliveries": ("MAX_DELIVERIES", (queued(4, ROOT),), "more than 2 recipients together"),
    "events": ("MAX_EVENTS", (), "more than 2 events"),
}


@pytest.mark.parametrize("name", LIMITS)
async def test_a_group_from_a_file_is_no_larger_than_one_that_grew_here(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, more, why = LIMITS[name]
    monkeypatch.setattr(vetting_groups, limit, 2)
    async with host_in(tmp_path) as host:
        with pytest.raises(CallboardError) as refused:
            await host.importing.run(file_of((*GROUP, *more)), folder=str(tmp_path))
        assert why in refused.value.message, refused.value.message
