"""What was decided of an agent's calls before a restart: it holds once, for the same call made again. Pure."""

from collections.abc import Callable

from attrs import define, field, frozen

from callboard_rpc.approvals import Approval, FileChangeSubject
from callboard_rpc.common import ToolKind

from ...approvals.operation import same_subject
from ...log.redact import PLACEHOLDER
from ...turns.call import Call


@frozen(kw_only=True)
class Decision:
    """`asked` is what the person saw of a call of that `kind`."""

    asked: Approval
    kind: ToolKind
    allowed: bool

    def is_about(self, call: Call, redact: Callable[[str], str]) -> bool:
        """Whether a call would be shown as that one was, in all that was shown; of a change too large to be shown
        nobody can say."""
        preview, asked = call.preview, self.asked
        if preview is None or call.tool is None or asked.kind != "permission":
            return False
        subject = preview.subject
        if isinstance(subject, FileChangeSubject) and any(c.truncated for c in subject.changes):
            return False
        if PLACEHOLDER in repr(asked.subject):  # another secret would look the same
            return False
        told = (self.kind, asked.tool, asked.title)
        now = (call.tool.kind, call.tool.name, redact(preview.title))
        return told == now and same_subject(asked, subject, redact=redact)


@define
class Decided:
    """Those of one turn, however often its agent is started again."""

    _left: list[Decision] = field(factory=list[Decision])

    def add(self, decision: Decision) -> None:
        self._left.append(decision)

    def take(self, call: Call, redact: Callable[[str], str]) -> bool | None:
        """Whether that call was allowed; None where it was not decided, or was made again already."""
        for each in self._left:
            if each.is_about(call, redact):
                self._left.remove(each)
                return each.allowed
        return None
