"""All that a session holds, told again: ``session/load``."""

from collections.abc import AsyncIterator
from typing import Final

from callboard_rpc.events import Message, SessionRewound

from ...host import Host
from ...log.record import Record
from ...log.scope import Filter
from ...sessions.rewound import Gone
from ...turns.drafts import draft_of
from ..contract import updates
from .follower import Follower, whole
from .story import spoken

_PAGE: Final = 500
_PAGE_BYTES: Final = 1024 * 1024


async def replay(host: Host, follower: Follower, *, through: int) -> None:
    """Tells a client everything up to a position: what was rewound aside, each call in the state in which it
    is, and of the plan the last one."""
    gone = await _gone(host, follower.session_id, through)
    plan: updates.Plan | None = None
    story = follower.story
    way, story.way = story.way, "text"
    async for page in _pages(host, follower.session_id, through):
        records = [record for record in page if record.seq not in gone]
        story.results = {
            record.value.call_id: record.value for record in records if record.type == "tool_result"
        }
        for record in records:
            for update in story.after(record, await whole(host, record)):
                if isinstance(update, updates.Plan):
                    plan = update
                elif not isinstance(update, updates.Notice):
                    await follower.tell(update)
    story.results, story.way = {}, way
    if plan is not None:
        await follower.tell(plan)


async def go_on_from_here(host: Host, follower: Follower) -> None:
    """Tells nothing of what was. Prompts that wait are told of when a turn takes them in."""
    waiting, follower.position = await host.queue.at_head(follower.session_id)
    for prompt in waiting:
        if prompt.kind == "prompt":
            follower.story.hold(
                prompt.event_seq,
                Message(
                    message_id=prompt.message_id,
                    author=prompt.author,
                    content=prompt.content,
                    client_message_id=prompt.client_message_id,
                ),
            )


async def begun_message(host: Host, follower: Follower) -> list[updates.SessionUpdate]:
    """What the running turn has said so far of a message that is not in the log yet; what streams goes on
    behind it."""
    streams = follower.story.streams
    turn_id = (await host.reading.session(follower.session_id)).active_turn_id
    said = None
    if turn_id is not None:
        said = await draft_of(host.log, host.deltas, host.redactor, turn_id)
    if turn_id is None or said is None:
        streams.began_nothing()
        return []
    streams.began(turn_id, said.message_id, said.answer, said.thought, said.following)
    return [
        *spoken(said.message_id, "thought", said.thought),
        *spoken(said.message_id, "answer", said.answer),
    ]


async def _pages(host: Host, session_id: str, through: int) -> AsyncIterator[list[Record]]:
    filter = Filter(session_id=session_id)
    after = 0
    while records := await host.log.page(
        filter, after=after, before=through + 1, limit=_PAGE, max_bytes=_PAGE_BYTES
    ):
        yield records
        after = records[-1].pos


async def _gone(host: Host, session_id: str, through: int) -> Gone:
    filter = Filter(session_id=session_id, types=frozenset({"session_rewound"}))
    rewinds: list[SessionRewound] = []
    after = 0
    while records := await host.log.page(filter, after=after, before=through + 1, limit=_PAGE):
        rewinds += [record.value for record in records]
        after = records[-1].pos
    return Gone.of(rewinds)
