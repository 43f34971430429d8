"""A workbench: a workspace in a temporary folder, and the built-in tools to use on it."""

import itertools
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import attrs

from callboard.tools.base import Preview, ToolContext, ToolOutcome
from callboard.tools.builtin import builtin_tools
from callboard.tools.environment import scrubbed_environment
from callboard.tools.registry import ToolRegistry
from callboard.tools.schema import structure_arguments
from callboard.tools.workspace import FolderWorkspace
from callboard_rpc.common import BlobId, BlobRef, CallId


@contextmanager
def every_thread_busy() -> Generator[None]:
    """While it is entered, no thread is left of those that are for everything."""
    limiter = anyio.to_thread.current_default_thread_limiter()
    busy = [object() for _ in range(int(limiter.total_tokens))]
    for each in busy:
        limiter.acquire_on_behalf_of_nowait(each)
    try:
        yield
    finally:
        for each in busy:
            limiter.release_on_behalf_of(each)


class KeptBlobs:
    """A blob sink that keeps what it is given."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    async def put(self, data: bytes, mime_type: str = "text/plain; charset=utf-8") -> BlobRef:
        self.kept.append(data)
        return BlobRef(
            blob_id=BlobId(f"blob_{len(self.kept)}"), bytes=len(data), mime_type=mime_type
        )


class Workbench:
    def __init__(self, root: Path, outside: Path) -> None:
        self.root = root
        self.outside = outside
        self.blobs = KeptBlobs()
        self.emitted: list[str] = []
        self.registry = ToolRegistry(builtin_tools())
        self._numbers = itertools.count()
        self.context = ToolContext(
            workspace=FolderWorkspace(root),
            session="ses_1",
            turn="trn_1",
            fence=1,
            call_id=CallId("call"),
            mode="work",
            emit=self.emitted.append,
            blobs=self.blobs,
            environment=scrubbed_environment(os.environ),
        )

    def with_context(self, **changes: Any) -> None:
        self.context = attrs.evolve(self.context, **changes)

    def write(self, path: str, content: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    async def call(self, name: str, **arguments: Any) -> ToolOutcome:
        tool = self.registry.get(name)
        assert tool is not None
        mark = f"{os.getpid()}-{id(self)}-{next(self._numbers)}"
        context = attrs.evolve(self.context, call_id=CallId(mark))
        return await tool.run(context, structure_arguments(tool.arguments, arguments))

    async def look(self, name: str, **arguments: Any) -> Preview:
        tool = self.registry.get(name)
        assert tool is not None
        return await tool.preview(self.context, structure_arguments(tool.arguments, arguments))
