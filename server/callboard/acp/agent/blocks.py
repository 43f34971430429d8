"""Content, both ways: what a prompt holds as Callboard's, and what is in the log as the protocol's. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from callboard_rpc import common
from callboard_rpc.errors import CallboardError

from ..contract import content as acp
from .texts import PIECE_BYTES, cut, pieces, weight

_IMAGE_BYTES: Final = PIECE_BYTES
"""A larger image of a past prompt is named, not sent again."""
_NAME_BYTES: Final = 8 * 1024
"""What the names around a content may take of its frame."""


def from_prompt(blocks: Sequence[acp.ContentBlock]) -> tuple[common.Content, ...]:
    """A prompt's blocks. Raises invalidParams, naming the block, for what no agent here understands."""
    return tuple(_from_block(block, index) for index, block in enumerate(blocks))


def _from_block(block: acp.ContentBlock, index: int) -> common.Content:
    match block:
        case acp.TextContent(text=text):
            return common.TextContent(text=text)
        case acp.ImageContent(data=data, mime_type=mime_type):
            return common.ImageContent(data=data, mime_type=mime_type)
        case acp.ResourceLink(uri=uri, name=name, mime_type=mime_type):
            return common.ResourceLink(uri=uri, name=name, mime_type=mime_type)
        case acp.EmbeddedResource(resource=resource):
            return _from_resource(resource, index)
        case acp.AudioContent():
            raise _refused(
                index, "is audio, which this agent does not understand (promptCapabilities.audio)"
            )


def _from_resource(resource: acp.EmbeddedResourceResource, index: int) -> common.Content:
    kind = resource.mime_type or ""
    match resource:
        case acp.TextResourceContents(uri=uri, text=text, mime_type=mime_type):
            return common.EmbeddedResource(uri=uri, text=text, mime_type=mime_type)
        case acp.BlobResourceContents(blob=blob) if kind.startswith("image/"):
            return common.ImageContent(data=blob, mime_type=kind)
        case acp.BlobResourceContents():
            raise _refused(
                index,
                f"holds {kind or 'binary data'}, which no agent here can read; send text or an image, "
                "or a resource_link to the file",
            )


def _refused(index: int, why: str) -> CallboardError:
    path = f"$.prompt[{index}]"
    return CallboardError(
        "invalidParams", f"{path} {why}", data={"errors": [{"path": path, "message": why}]}
    )


def text_block(text: str) -> acp.TextContent:
    return acp.TextContent(text=text)


def to_blocks(content: Sequence[object]) -> Iterator[acp.ContentBlock]:
    """What somebody said, in blocks that each fit a frame; blocks of other kinds are left out."""
    for block in content:
        match block:
            case common.TextContent(text=text):
                yield from map(text_block, pieces(text))
            case common.ImageContent(data=data, mime_type=mime_type):
                if len(data) <= _IMAGE_BYTES and _is_short(mime_type):
                    yield acp.ImageContent(data=data, mime_type=mime_type)
                else:
                    kind = cut(mime_type, _NAME_BYTES)
                    yield text_block(f"[an image ({kind}), {len(data) * 3 // 4} bytes]")
            case common.ResourceLink(uri=uri, name=name, mime_type=mime_type):
                if _is_short(uri, name, mime_type):
                    yield acp.ResourceLink(uri=uri, name=name or uri, mime_type=mime_type)
                else:
                    yield _named(uri, name)
            case common.EmbeddedResource(uri=uri, text=text, mime_type=mime_type):
                if _is_short(uri, mime_type):
                    yield acp.EmbeddedResource(
                        resource=acp.TextResourceContents(
                            uri=uri, text=cut(text), mime_type=mime_type
                        )
                    )
                else:
                    yield _named(uri, None)
                    yield text_block(cut(text))
            case _:
                pass


def _is_short(*names: str | None) -> bool:
    """Whether names leave room for what they name."""
    return weight(names) <= _NAME_BYTES


def _named(uri: str, name: str | None) -> acp.TextContent:
    """Something whose name is too long to be one."""
    return text_block(f"[{cut(name or 'a resource', _NAME_BYTES // 2)}]({cut(uri, _NAME_BYTES)})")
