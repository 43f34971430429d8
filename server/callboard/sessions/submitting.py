"""A person's prompt before it is taken: the hooks of the person's own configuration are asked first.

It is the client's request that waits for them, and nothing is durable until they have agreed; a
prompt that was taken is never looked at again.
"""

from collections.abc import Callable, Sequence

from attrs import frozen

from callboard_rpc.common import Content, TextContent
from callboard_rpc.events import Author

from ..config import Settings
from ..hooks.service import HookSpace
from ..log.log import Log
from ..turns.lifecycle import blocked
from ..turns.projection import SQL as TURN_SQL
from .cache import SessionCache

HOOK_META = {"callboard/hook": "UserPromptSubmit"}
"""What marks a part of a prompt that a hook has added."""


@frozen(kw_only=True)
class Submitting:
    """Asks the `UserPromptSubmit` hooks of a folder's configuration."""

    log: Log
    cache: SessionCache
    settings: Callable[[str], Settings]
    space: HookSpace

    async def asked(
        self,
        session_id: str,
        content: Sequence[Content],
        *,
        author: Author,
        client_message_id: str | None = None,
    ) -> tuple[Content, ...]:
        """The prompt with what hooks have to add. Raises sessionNotFound, hookBlocked.

        A prompt that is sent once more is not asked about again."""
        state = await self.cache.state(session_id)
        settings = self.settings(state.cwd)
        if not settings.hooks.user_prompt_submit or state.closed:
            return tuple(content)
        if client_message_id is not None and self.log.glance(
            TURN_SQL["trigger_by_client_message"], session_id, client_message_id
        ):
            return tuple(content)
        hooks = self.space.of(settings, session_id=session_id, cwd=state.cwd, rootId=state.root_id)
        decision = await hooks.ask(
            "UserPromptSubmit",
            prompt="\n\n".join(block.text for block in content if isinstance(block, TextContent)),
            author=author.name,
        )
        if decision.block is not None:
            raise blocked("UserPromptSubmit", decision.block)
        added = tuple(TextContent(text=text, meta=dict(HOOK_META)) for text in decision.context)
        return (*content, *added)
