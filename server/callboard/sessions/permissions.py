"""Policy, as it applies to the calls of one session at this moment."""

from collections.abc import Callable, Sequence

from callboard_rpc.approvals import Approval, CommandSubject, FileChangeSubject, Rule, RuleScope
from callboard_rpc.approvals import ToolCallSubject as CallSubject
from callboard_rpc.common import Mode

from ..approvals.options import options_for, suggest_rule
from ..approvals.policy import Call, Permissions, decide
from ..approvals.service import Approvals
from ..config import EXPIRE_UNATTENDED_S, ApprovalSettings
from ..tools.base import Preview, Tool, Workspace
from ..tools.registry import ToolRegistry
from ..turns.call import Verdict
from .cache import SessionCache
from .state import narrowest

_NOBODY = "nobody is connected who could be asked, and this server is set to refuse then"


class Permits:
    """Judges the calls of one turn. The mode is read anew for each call, so that switching a session, or
    one `above` it (its parent first), to ``ask`` stops the next write of a turn that runs
    (coordination 50). `ceiling` is a mode that its agent never leaves; `refusal` is why nobody is asked by this
    turn, whoever is there, but refused at once."""

    def __init__(
        self,
        *,
        session_id: str,
        above: Sequence[str],
        workspace: Workspace,
        scope: frozenset[str] | None,
        cache: SessionCache,
        approvals: Approvals,
        settings: ApprovalSettings,
        attended: Callable[[], bool],
        ceiling: Mode = "work",
        refusal: str | None = None,
    ) -> None:
        self._session_id = session_id
        self._line = (session_id, *above)
        self._workspace = workspace
        self._scope = scope
        self._cache = cache
        self._approvals = approvals
        self._settings = settings
        self._attended = attended
        self._ceiling: Mode = ceiling
        self._refusal = refusal

    async def judge(self, tool: Tool, preview: Preview | None) -> Verdict:
        """What policy says of a call of `tool`."""
        verdict = await self.judge_again(tool, preview)
        if verdict.effect != "ask":
            return verdict
        why = self.why_not_asked()
        return verdict if why is None else Verdict(effect="deny", reason=why)

    def why_not_asked(self) -> str | None:
        """Why nobody is asked anything now; None where somebody is."""
        if self._refusal is not None:
            return self._refusal
        nobody = self._settings.unattended == "deny" and not self._attended()
        return _NOBODY if nobody else None

    async def judge_again(self, tool: Tool, preview: Preview | None) -> Verdict:
        """What mode and rules say by now; a question that was asked is not taken back because whoever
        was there has left."""
        roots = tuple(str(root) for root in self._workspace.roots)
        mode = narrowest((self._ceiling, *await self._cache.modes(self._line)))
        rules = await self._approvals.rules_for(self._line, roots[0])
        decision = decide(
            Call(
                tool=tool.name,
                effect=tool.effect,
                roots=roots,
                command=preview.command if preview else None,
                paths=preview.paths if preview else (),
                permission=tool.permission,
            ),
            self._permissions(mode, rules),
        )
        if decision.effect != "ask" or preview is None:
            return Verdict(effect=decision.effect, reason=decision.reason)
        return Verdict(
            effect="ask",
            reason=decision.reason,
            options=options_for(tool, preview, roots, forced=decision.forced),
        )

    def _permissions(self, mode: Mode, rules: tuple[Rule, ...]) -> Permissions:
        """Of the session, under those of its parent, under those of the parent's, up to the root's. The
        mode is the narrowest of the line already, and so are the tools that were pinned for it."""
        permissions: Permissions | None = None
        for place in reversed(range(len(self._line))):
            permissions = Permissions(
                mode=mode,
                sessions=self._line[place:],
                rules=rules,
                policy=self._settings.policy,
                narrowing=self._settings.narrowing,
                tools=self._scope if place == 0 else None,
                ceiling=permissions,
            )
        assert permissions is not None
        return permissions


def time_to_answer_s(settings: ApprovalSettings, *, attended: bool) -> float | None:
    """How long a question that comes now waits for its answer; None for as long as it takes.

    Decided once, when it is asked, and told with it: whoever comes or leaves afterwards moves nothing
    (DESIGN 5, interrupts-and-peers 60, execution 49).
    """
    if attended:
        return settings.expire_s
    match settings.unattended:
        case "park":
            return None
        case "expire":
            return EXPIRE_UNATTENDED_S if settings.expire_s is None else settings.expire_s
        case "deny":  # they were there when the call was judged
            return settings.expire_s


def suggestion(
    registry: ToolRegistry,
) -> Callable[[Approval, RuleScope, tuple[str, ...]], tuple[str, str | None]]:
    """Makes, from a stored approval, the rule that its standing answers stand for."""

    def suggest(
        approval: Approval, scope: RuleScope, roots: tuple[str, ...]
    ) -> tuple[str, str | None]:
        command: str | None = None
        paths: tuple[str, ...] = ()
        match approval.subject:
            case CommandSubject(command=line):
                command = line
            case FileChangeSubject(changes=changes):
                paths = tuple(change.path for change in changes)
            case CallSubject(locations=locations):
                paths = tuple(location.path for location in locations)
            case _:
                pass
        name = approval.tool or "*"
        tool = registry.get(name)
        if tool is None:
            return name, None
        preview = Preview(
            title=approval.title, subject=approval.subject, command=command, paths=paths
        )
        suggested = suggest_rule(tool, preview, scope, roots)
        return suggested.tool, suggested.pattern

    return suggest
