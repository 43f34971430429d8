"""What an agent is told: all that was said to it since it was told the last time, as the protocol has it. Pure."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from callboard_rpc.common import EmbeddedResource, ImageContent, ResourceLink, TextContent
from callboard_rpc.events import Directive, Message, ScheduleFired, Summary

from ...sessions.transcript import SUMMARY_INTRODUCTION, Said
from ..contract import content
from ..contract.server import PromptCapabilities

_PAST_CHARS = 60_000
"""How much of what was before an agent is told that begins anew; the newest of it."""

_PAST = "This conversation began before you took part in it, or you have lost what you knew of it. What was said so far:"
_PAST_CUT = "[What was said before that is left out.]"
_END_OF_PAST = "That is the end of what was said before. Go on from there with what follows."


def blocks_of(said: Iterable[Said | str], takes: PromptCapabilities) -> list[content.ContentBlock]:
    """What was said, in its order, as far as the agent takes it."""
    out: list[content.ContentBlock] = []
    for each in said:
        match each:
            case str():
                out.append(content.TextContent(text=each))
            case Directive(text=text, context=context):
                whole = f"{text}\n\nContext: {context}" if context else text
                out.append(content.TextContent(text=whole))
            case Summary(text=text):
                out.append(content.TextContent(text=SUMMARY_INTRODUCTION + text))
            case ScheduleFired(prompt=prompt):
                out.append(content.TextContent(text=prompt))
            case Message(content=blocks):
                out.extend(made for b in blocks if (made := _block(b, takes)) is not None)
    return out


def _block(block: Any, takes: PromptCapabilities) -> content.ContentBlock | None:
    match block:
        case TextContent(text=text):
            return content.TextContent(text=text)
        case ImageContent(data=data, mime_type=mime_type):
            if not takes.image:
                return content.TextContent(text=f"[an image ({mime_type}), which you cannot take]")
            return content.ImageContent(data=data, mime_type=mime_type)
        case ResourceLink(uri=uri, name=name, mime_type=mime_type):
            return content.ResourceLink(uri=uri, name=name or uri, mime_type=mime_type)
        case EmbeddedResource(uri=uri, text=text, mime_type=mime_type):
            if not takes.embedded_context:
                whole = f'<resource uri="{escape(uri)}">\n{text}\n</resource>'
                return content.TextContent(text=whole)
            resource = content.TextResourceContents(uri=uri, text=text, mime_type=mime_type)
            return content.EmbeddedResource(resource=resource)
        case _:
            return None


def introduction(notes: Sequence[str]) -> list[content.ContentBlock]:
    """What an agent is told first of all, once: its instructions, and who else is there."""
    text = "\n\n".join(note.strip() for note in notes if note.strip())
    if not text:
        return []
    return [content.TextContent(text=f"<instructions>\n{text}\n</instructions>")]


def past(spoken: Sequence[tuple[str, str]]) -> list[content.ContentBlock]:
    """What was said before, for an agent that does not know it."""
    kept: list[str] = []
    left = _PAST_CHARS
    for who, text in reversed(spoken):
        line = f"<{_tag(who)}>\n{escape(text, quote=False)}\n</{_tag(who).partition(' ')[0]}>"
        if len(line) > left:
            kept.append(_PAST_CUT)
            break
        left -= len(line)
        kept.append(line)
    if not kept:
        return []
    return [content.TextContent(text="\n\n".join((_PAST, *reversed(kept), _END_OF_PAST)))]


def _tag(who: str) -> str:
    return f'agent name="{escape(who)}"' if who else "person"


def _quoted(title: str) -> str:
    return f"'{title}'"


def after_a_restart(decided: Sequence[tuple[str, bool, str | None]]) -> str:
    """What an agent is told that was waiting for permission when its server died: what was decided of each call (by
    its title), and with what words."""
    lines = [
        "The server was restarted while you waited for permission. What was decided meanwhile, about the calls that "
        "had not begun:"
    ]
    for title, allowed, feedback in decided:
        verdict = "allowed" if allowed else "refused"
        said = f": {feedback}" if feedback else ""
        lines.append(f"- {_quoted(title)} was {verdict}{said}.")
    lines.append(
        "None of them was run. Make those again that were allowed and are still needed, exactly as they were, and go "
        "on with the task."
    )
    return "\n".join(lines)
