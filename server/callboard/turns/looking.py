"""What may be shown of a call before it runs."""

from collections.abc import Callable
from contextlib import suppress

import orjson
from attrs import evolve

from callboard_rpc.approvals import ToolCallSubject

from ..log.text import all_well_formed
from ..tools.base import Preview, Tool, ToolContext
from ..tools.schema import structure_arguments
from .call import Call


async def look(
    call: Call, tool: Tool, context: ToolContext, redact: Callable[[str], str]
) -> Preview:
    """The preview of a call whose arguments are read. Policy judges what would run; a person reads, and the
    log keeps, what it comes to without its secrets: a title and a subject's arguments are cut, and could
    end with half of one, which the log does not know (session-messaging 12). Raises `ToolFailure`."""
    preview = await tool.preview(context, call.arguments)
    given = orjson.dumps(all_well_formed(call.shown)).decode()
    clean = redact(given)
    if clean == given:
        return preview
    subject = ToolCallSubject(name=call.name, arguments=orjson.loads(clean))
    shown = Preview(title=call.name, subject=subject)
    with suppress(Exception):  # a placeholder need not make sense as an argument
        shown = await tool.preview(context, structure_arguments(tool.arguments, subject.arguments))
    if isinstance(preview.subject, ToolCallSubject):
        return evolve(preview, title=shown.title, subject=shown.subject)
    return evolve(preview, title=shown.title)  # a diff or a command is whole
