"""What the running turns of this process have said that is in no event yet, as it streamed.

However fast it streams, no more than one save of a turn waits for the writer: the save takes what there is
when its time has come, and not what there was when it was asked for.
"""

import asyncio
import threading

from attrs import define, field


@define(eq=False)
class GrowingDraft:
    """The unfinished message of one turn. It grows on the loop's thread, and is read in the writer's."""

    message_id: str
    saving: "asyncio.Future[int] | None" = None
    """The save that was asked for last."""
    _answer: list[str] = field(factory=list[str])
    _thought: list[str] = field(factory=list[str])
    _next_index: str = "{}"
    _unsaved: bool = False
    _lock: threading.Lock = field(factory=threading.Lock)

    def add(self, answer: str, thought: str, next_index: str) -> bool:
        """Takes more of it in. Whether it has to be asked for a save: where one has not begun, that has this, too."""
        with self._lock:
            self._answer.append(answer)
            self._thought.append(thought)
            self._next_index = next_index
            waits, self._unsaved = self._unsaved, True
        return not waits

    def whole(self) -> tuple[str, str, str]:
        """Answer, thought and the next index, for the save that begins now."""
        with self._lock:
            self._unsaved = False
            answer, thought, next_index = self._answer[:], self._thought[:], self._next_index
        return "".join(answer), "".join(thought), next_index
