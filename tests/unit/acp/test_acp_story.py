"""What the records of a session are to an editor, without anything around it."""

from typing import Any

import pytest

from callboard.acp.agent.story import Story
from callboard.acp.contract import updates
from callboard.acp.contract.server import ClientCapabilities, ClientSessionCapabilities, Marker
from callboard.log.record import Record
from callboard_rpc.events import Notice, PlanEntry, PlanUpdated

SHOWS = ClientCapabilities(session=ClientSessionCapabilities(notices=Marker()))


@pytest.mark.parametrize("capabilities", [SHOWS, ClientCapabilities()])
def test_a_notice_of_the_log_goes_to_editors_that_show_notices_and_to_no_other(
    capabilities: ClientCapabilities,
) -> None:
    story = Story("ses_1", capabilities)
    record = Record(1, "ses_1", 1, "evt_1", "notice", "2001-01-01T00:00:00Z", "{}", None, 0, "{}")
    told = list(
        story.after(record, Notice(severity="warning", title="t" * 90_000, description="d"))
    )
    if capabilities is not SHOWS:
        assert told == []
        return
    (notice,) = told
    assert isinstance(notice, updates.Notice)
    assert (notice.severity, notice.description) == ("warning", "d")
    assert 1_000 < len(notice.title) < 5_000


def test_words_that_the_protocol_does_not_have_are_told_by_those_that_it_has() -> None:
    story = Story("ses_1", SHOWS)
    record = Record(1, "ses_1", 1, "evt_1", "plan_updated", "2001-01-01T00:00:00Z", "{}", None, 0, "{}")  # fmt: skip
    odd: Any = "\x1b[2Knever heard of"
    plan = PlanUpdated(entries=(PlanEntry(content="a\x1b[2K", status=odd, priority=odd),))
    (told,) = story.after(record, plan)
    assert isinstance(told, updates.Plan)
    (entry,) = told.entries
    assert (entry.content, entry.status, entry.priority) == ("a\\x1b[2K", "pending", "medium")
    (notice,) = story.after(record, Notice(severity=odd, title="t"))
    assert isinstance(notice, updates.Notice) and notice.severity == "info"
