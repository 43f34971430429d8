"""What people send, before it is kept: content of prompts, titles."""

import base64
import binascii
from collections.abc import Sequence

import attrs
import orjson

from callboard_rpc.common import (
    Content,
    EmbeddedResource,
    ImageContent,
    Json,
    ResourceLink,
    TextContent,
)
from callboard_rpc.errors import CallboardError

from ..log.text import all_well_formed, well_formed

_MAX_TITLE = 500


def clean_title(title: str | None) -> str | None:
    """A title on one line and of bounded length; None for none."""
    if title is None:
        return None
    return " ".join(well_formed(title).split())[:_MAX_TITLE] or None


def checked_content(
    content: Sequence[Content], limit: int, meta: Json | None = None
) -> tuple[Content, ...]:
    """Content that can be stored: well-formed, not empty, at most `limit` bytes with the `meta` beside it.

    Raises invalidParams, messageTooLarge.
    """
    size = _weight(meta) + sum(_weight(block.meta) for block in content)
    empty = True
    out: list[Content] = []
    for index, block in enumerate(content):
        match block:
            case TextContent(text=raw):
                text = well_formed(raw)
                empty = empty and not text.strip()
                size += len(text.encode())
                out.append(attrs.evolve(block, text=text, meta=all_well_formed(block.meta)))
            case ImageContent(data=data):
                _check_image(block, index)
                empty = False
                size += len(data)
                out.append(block)
            case EmbeddedResource(text=raw, uri=uri):
                text = well_formed(raw)
                empty = False
                size += len(text.encode()) + len(uri)
                out.append(attrs.evolve(block, text=text))
            case ResourceLink(uri=uri, name=name):
                empty = False
                size += len(uri) + len(name or "")
                out.append(block)
    if empty:
        raise CallboardError(
            "invalidParams",
            "the prompt is empty; put some text, an image or a resource into content",
            data={"errors": [{"path": "$.content", "message": "must not be empty"}]},
        )
    if size > limit:
        raise CallboardError(
            "messageTooLarge",
            f"the prompt has {size} bytes, more than the {limit} allowed; "
            "put the material into a file of the workspace and name it",
            data={"limit": limit},
        )
    return tuple(out)


def _weight(meta: Json | None) -> int:
    return 0 if not meta else len(orjson.dumps(all_well_formed(meta)))


def _check_image(block: ImageContent, index: int) -> None:
    try:
        base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError) as fault:
        raise CallboardError(
            "invalidParams",
            f"the image in content[{index}] is not base64",
            data={"errors": [{"path": f"$.content[{index}].data", "message": "must be base64"}]},
        ) from fault
