"""Content blocks: what prompts, messages and results are made of."""

from typing import Literal, TypeAlias

from callboard_rpc.common import Json
from callboard_rpc.frozen import frozen

Role: TypeAlias = Literal["assistant", "user"]


@frozen(kw_only=True)
class Annotations:
    audience: tuple[Role, ...] | None = None
    last_modified: str | None = None
    priority: float | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class TextContent:
    text: str
    type: Literal["text"] = "text"
    annotations: Annotations | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ImageContent:
    """`data` is base64."""

    data: str
    mime_type: str
    type: Literal["image"] = "image"
    uri: str | None = None
    annotations: Annotations | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AudioContent:
    """`data` is base64."""

    data: str
    mime_type: str
    type: Literal["audio"] = "audio"
    annotations: Annotations | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ResourceLink:
    name: str
    uri: str
    type: Literal["resource_link"] = "resource_link"
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class TextResourceContents:
    text: str
    uri: str
    mime_type: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class BlobResourceContents:
    """`blob` is base64."""

    blob: str
    uri: str
    mime_type: str | None = None
    meta: Json | None = None


EmbeddedResourceResource: TypeAlias = TextResourceContents | BlobResourceContents


@frozen(kw_only=True)
class EmbeddedResource:
    resource: EmbeddedResourceResource
    type: Literal["resource"] = "resource"
    annotations: Annotations | None = None
    meta: Json | None = None


ContentBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
)
CONTENT_BLOCKS: dict[str, type[object]] = {
    "text": TextContent,
    "image": ImageContent,
    "audio": AudioContent,
    "resource_link": ResourceLink,
    "resource": EmbeddedResource,
}
