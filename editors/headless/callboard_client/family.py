"""What every family of methods is made of."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

from callboard_rpc.common import Page

Call: TypeAlias = Callable[[str, Any], Awaitable[Any]]
"""Method and params in, structured result out; raises `RemoteError` and `ConnectionLost`."""


async def pages(call: Call, method: str, at: Callable[[str | None], Any]) -> AsyncIterator[Any]:
    cursor: str | None = None
    while True:
        page: Page[Any] = await call(method, at(cursor))
        for item in page.data:
            yield item
        cursor = page.next_cursor
        if cursor is None:
            return


class Family:
    def __init__(self, call: Call) -> None:
        self._call = call
