"""Which writes an agent was just allowed: each once, and with what was shown of it. Pure."""

from collections.abc import Sequence

from attrs import define, field, frozen

from ..contract.tool_calls import Diff


@frozen
class Shown:
    """What was shown of a file that a call changes: texts before and after, each a whole file's or a part of it. None
    was shown: whatever it writes."""

    path: str
    changes: tuple[tuple[str | None, str], ...] = ()

    def fits(self, before: str | None, after: str) -> bool:
        """Whether a file that is `before` would be, with what was shown, `after`."""
        if not self.changes:
            return True
        now, wanted = _plain(before or ""), _plain(after)
        if len(self.changes) == 1 and wanted == _plain(self.changes[0][1]):
            old = self.changes[0][0]
            return old is None or _plain(old) == now
        everywhere: str | None = now
        most = len(now) + len(wanted) + sum(len(new) for _, new in self.changes)
        for old, new in self.changes:
            part, into = _plain(old or ""), _plain(new)
            if not part or part not in now:
                return False
            everywhere = _replaced(everywhere, part, into, most)
            now = now.replace(part, into, 1)
        return wanted in (now, everywhere)


def shown_writes(diffs: Sequence[tuple[str, Diff]], paths: Sequence[str]) -> tuple[Shown, ...]:
    """Of a call that changes `paths`, with its diffs, each with its path; all paths resolved."""
    changes: dict[str, list[tuple[str | None, str]]] = {}
    for path, diff in diffs:
        changes.setdefault(path, []).append((diff.old_text, diff.new_text))
    if changes:
        return tuple(Shown(path, tuple(each)) for path, each in changes.items())
    return tuple(Shown(path) for path in dict.fromkeys(paths))


@define
class Allowance:
    """The writes that are allowed and were not made yet."""

    _left: list[Shown] = field(factory=list[Shown])

    def add(self, writes: Sequence[Shown]) -> None:
        self._left.extend(writes)

    def take(self, path: str, before: str | None, after: str) -> bool:
        """Whether that may be written now; then it was."""
        for each in self._left:
            if each.path == path and each.fits(before, after):
                self._left.remove(each)
                return True
        return False

    def clear(self) -> None:
        self._left.clear()


def _replaced(text: str | None, part: str, into: str, most: int) -> str | None:
    """`text` with each `part` made `into`. None where that would have more than `most` characters: a few replacements
    can be made to fill any memory."""
    if text is None or len(text) + text.count(part) * (len(into) - len(part)) > most:
        return None
    return text.replace(part, into)


def _plain(text: str) -> str:
    """With the line ends of other systems as ours: agents do not keep them."""
    return text.replace("\r\n", "\n")
