"""Which sessions an editor has open whose files can be read, and written, through it."""

from collections.abc import Callable

from ..tools.base import Buffers


class OpenBuffers:
    """The buffers of the editors of this process, by session; of several, those of the last that came."""

    def __init__(self) -> None:
        self._of: dict[str, list[Buffers]] = {}

    def add(self, session_id: str, buffers: Buffers) -> Callable[[], None]:
        """An editor has opened a session. Returns what takes it back."""
        self._of.setdefault(session_id, []).append(buffers)

        def remove() -> None:
            left = self._of.get(session_id, [])
            if buffers in left:
                left.remove(buffers)
            if not left:
                self._of.pop(session_id, None)

        return remove

    def of(self, session_id: str, root_id: str) -> Buffers | None:
        """Those for the tools of a session: its own, or its root's."""
        found = self._of.get(session_id) or self._of.get(root_id)
        return found[-1] if found else None
