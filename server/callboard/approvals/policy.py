"""Whether a tool call may run: pure decisions, no clock, no disk, no people.

What counts, strictest first: what is never done; a denial by the mode, a rule or the configuration;
places that always ask; a rule that asks; a rule or a configuration that allows; the default. A
parent's permissions are judged in the same way, and the stricter of the two holds, so that a
child can never do more than its parent (interrupts-and-peers 77).
"""

import posixpath
from collections.abc import Iterable, Mapping
from typing import Final

from attrs import field, frozen

from callboard_rpc.approvals import Effect, Rule
from callboard_rpc.common import Mode

from ..tools.base import Effect as ToolEffect
from . import defaults
from .patterns import (
    allows_command,
    allows_paths,
    denies_command,
    denies_paths,
    loose_words,
    parse_command,
    relative_to,
)
from .wrappers import MOST, program_name, wrapped

STRICTNESS: Final[dict[Effect, int]] = {"allow": 0, "ask": 1, "deny": 2}


@frozen(kw_only=True)
class Call:
    """The tool call to judge. `effect` is None for a tool that nobody knows.

    `permission` is the name that the tool shares with others (`Tool.permission`). `command` is the
    command line; `paths` are what it touches, absolute and resolved through
    symlinks, a command's working directory included. `roots` are the session's folders, resolved,
    the workspace first.
    """

    tool: str
    effect: ToolEffect | None
    roots: tuple[str, ...]
    command: str | None = None
    paths: tuple[str, ...] = ()
    permission: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What rules can call it, the nearest name first."""
        return (self.tool,) if self.permission is None else (self.tool, self.permission)


@frozen(kw_only=True)
class Permissions:
    """What one session may do. `ceiling` are its parent's permissions, as they are now: it may never do
    more (interrupts-and-peers 77). `sessions` are it and those above it, whose rules are its own, too.

    `policy` is the configuration's table (`approvals.policy`), `narrowing` the workspace's own, which
    only takes away. `tools` are the names in scope, None for all. `rules` may hold more than
    apply: those of other sessions and workspaces are left out.
    """

    mode: Mode
    sessions: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    policy: Mapping[str, Effect] = field(factory=dict[str, Effect])
    narrowing: Mapping[str, Effect] = field(factory=dict[str, Effect])
    tools: frozenset[str] | None = None
    ceiling: "Permissions | None" = None


@frozen(kw_only=True)
class Decision:
    """`reason` is for the person and for the model. `rule` is the one that decided, if one did.

    `hard`: nobody can change this answer. `forced`: an "ask" that no standing rule can spare.
    """

    effect: Effect
    reason: str
    rule: Rule | None = None
    hard: bool = False
    forced: bool = False


def decide(call: Call, permissions: Permissions) -> Decision:
    """What happens to `call`: it runs, a person is asked, or it is refused."""
    decision = _judge(call, permissions)
    ceiling = permissions.ceiling
    while ceiling is not None:
        above = _judge(call, ceiling)
        if _weight(above) > _weight(decision):
            decision = above
        ceiling = ceiling.ceiling
    return decision


def _weight(decision: Decision) -> tuple[int, bool, bool]:
    return STRICTNESS[decision.effect], decision.hard, decision.forced


def _judge(call: Call, permissions: Permissions) -> Decision:
    if call.effect is None:
        return Decision(effect="deny", reason=f"there is no tool {call.tool}")
    if permissions.tools is not None and call.tool not in permissions.tools:
        return Decision(effect="deny", reason=f"{call.tool} is not among this agent's tools")
    never = never_run(call.command) if call.command is not None else None
    if never is not None:
        return Decision(effect="deny", reason=f"{never}; this is never run, by no rule", hard=True)

    rules = [r for r in permissions.rules if _in_scope(r, call, permissions)]
    denied = _denied(call, call.effect, permissions, rules)
    if denied is not None:
        return denied
    place = _place_that_asks(call, call.effect)
    if place is not None:
        return Decision(effect="ask", reason=place, forced=True)
    return _asked_or_allowed(call, call.effect, permissions, rules)


def _denied(
    call: Call, effect: ToolEffect, permissions: Permissions, rules: list[Rule]
) -> Decision | None:
    if permissions.mode != "work" and effect in ("write", "execute"):
        reason = f"in {permissions.mode} mode nothing is changed or run; switch to work mode first"
        return Decision(effect="deny", reason=reason)
    for rule in _most_specific_first(rules):
        if rule.effect == "deny" and _reaches(rule.tool, rule.pattern, call):
            return Decision(effect="deny", reason=f"a rule denies {_about(rule)}", rule=rule)
    for table, whose in (
        (permissions.policy, "configuration"),
        (permissions.narrowing, "workspace"),
    ):
        for key, answer in table.items():
            if answer == "deny" and _key_reaches(key, call, effect):
                return Decision(effect="deny", reason=f"the {whose} denies {key}")
    return None


def _asked_or_allowed(
    call: Call, effect: ToolEffect, permissions: Permissions, rules: list[Rule]
) -> Decision:
    for rule in _most_specific_first(rules):
        if rule.effect == "ask" and _reaches(rule.tool, rule.pattern, call):
            return Decision(effect="ask", reason=f"a rule asks about {_about(rule)}", rule=rule)

    narrowed = _narrowed(call, effect, permissions)
    allowing = [r for r in _most_specific_first(rules) if r.effect == "allow"]
    if narrowed is not None:
        # What a person said before, and elsewhere, does not answer for this workspace.
        allowing = [r for r in allowing if r.scope != "global"]
    covering = _covering(call, allowing)
    if covering is not None:
        return Decision(effect="allow", reason=f"a rule allows {_about(covering)}", rule=covering)
    if narrowed is not None:
        return Decision(effect="ask", reason=f"the workspace asks about {narrowed}")

    configured = _configured(call, effect, permissions.policy)
    if configured is not None:
        key, answer = configured
        return Decision(effect=answer, reason=f"the configuration says {answer} for {key}")
    answer = defaults.POLICY[effect]
    return Decision(effect=answer, reason=_DEFAULT_REASONS[effect])


_DEFAULT_REASONS: Final[dict[ToolEffect, str]] = {
    "read": "reading the workspace is allowed",
    "write": "changing files needs approval",
    "execute": "running a command needs approval",
    "kernel": "it changes nothing but Callboard's own state",
}


def never_run(command: str) -> str | None:
    """Why nobody can have `command` run; None for all but the privileged and the destructive."""
    line = parse_command(command)
    for simple in line.every:
        for words in wrapped(simple.words):
            if words and (reason := defaults.forbidden(program_name(words[0]), words[1:])):
                return reason
        for _, target in simple.redirections:
            if reason := defaults.forbidden_target(target):
                return reason
    if line.certain:
        return None
    if defaults.is_fork_bomb(command):
        return "it multiplies itself until the machine stops"
    if not line.commands or any(len(wrapped(s.words)) >= MOST for s in line.every):
        # It was too long, too deep or too odd to be read: every word may be a program.
        words = loose_words(command)
        for index, word in enumerate(words):
            if reason := defaults.forbidden(program_name(word), words[index + 1 : index + 50]):
                return reason
    return None


def _in_scope(rule: Rule, call: Call, permissions: Permissions) -> bool:
    match rule.scope:
        case "session":
            return rule.session_id in permissions.sessions
        case "workspace":
            return call.roots[:1] == (rule.workspace,)
        case "global":
            return True


def _most_specific_first(rules: Iterable[Rule]) -> list[Rule]:
    """Which of several rules of one effect is named as the reason; the answer is the same."""
    return sorted(
        rules, key=lambda r: (r.tool == "*", r.pattern is None, -len(r.pattern or ""), r.rule_id)
    )


def _covering(call: Call, rules: list[Rule]) -> Rule | None:
    """The first of the rules that together allow the whole call."""
    mine = [r for r in rules if r.tool in (*call.names, "*")]
    whole = next((r for r in mine if r.pattern is None), None)
    patterned = [(r, r.pattern) for r in mine if r.pattern is not None]
    if call.command is not None:
        if allows_command([pattern for _, pattern in patterned], call.command):
            return next(
                (r for r, p in patterned if allows_command([p], call.command)), patterned[0][0]
            )
        return whole
    covering = (r for r, p in patterned if allows_paths(p, call.paths, call.roots))
    return next(covering, whole)


def _reaches(tool: str, pattern: str | None, call: Call) -> bool:
    """Whether a rule that denies or asks is about this call, in doubt yes."""
    if tool not in (*call.names, "*"):
        return False
    if pattern is None:
        return True
    if call.command is not None and denies_command(pattern, call.command):
        return True
    return denies_paths(pattern, call.paths, call.roots)


def _about(rule: Rule) -> str:
    what = "every tool" if rule.tool == "*" else rule.tool
    return what if rule.pattern is None else f"{what}({rule.pattern})"


# --- the configured table ---------------------------------------------------------------------------


def split_key(key: str) -> tuple[str, str | None]:
    """A key of ``approvals.policy``: a tool or an effect, and the pattern in parentheses, if any."""
    name, opening, pattern = key.partition("(")
    if opening and pattern.endswith(")"):
        return name.strip(), pattern[:-1].strip() or None
    return key.strip(), None


def _names(name: str, call: Call, effect: ToolEffect) -> bool:
    return name in (*call.names, effect, "*")


def _key_reaches(key: str, call: Call, effect: ToolEffect) -> bool:
    name, pattern = split_key(key)
    return _names(name, call, effect) and _reaches("*", pattern, call)


def _narrowed(call: Call, effect: ToolEffect, permissions: Permissions) -> str | None:
    """The workspace's key that asks about this call."""
    asking = (k for k, answer in permissions.narrowing.items() if answer == "ask")
    return next((k for k in asking if _key_reaches(k, call, effect)), None)


def _configured(
    call: Call, effect: ToolEffect, policy: Mapping[str, Effect]
) -> tuple[str, Effect] | None:
    """The table's answer, its denials aside: a pattern before a tool before an effect before ``*``."""
    asking = [k for k, answer in policy.items() if answer == "ask"]
    allowing = [k for k, answer in policy.items() if answer == "allow"]
    for key in asking:
        if split_key(key)[1] is not None and _key_reaches(key, call, effect):
            return key, "ask"
    if (key := _covering_key(allowing, call, effect)) is not None:
        return key, "allow"
    for name in (*call.names, effect, "*"):
        answer = policy.get(name)
        if answer is not None:
            return name, answer
    return None


def _covering_key(keys: list[str], call: Call, effect: ToolEffect) -> str | None:
    split = [(key, *split_key(key)) for key in keys]
    patterned = [(k, p) for k, name, p in split if p is not None and _names(name, call, effect)]
    if not patterned:
        return None
    if call.command is not None:
        covered = allows_command([p for _, p in patterned], call.command)
        return patterned[0][0] if covered else None
    return next((k for k, p in patterned if allows_paths(p, call.paths, call.roots)), None)


# --- places -----------------------------------------------------------------------------------------


def _place_that_asks(call: Call, effect: ToolEffect) -> str | None:
    """Why a call asks because of where it reaches, whatever rules allow."""
    if effect == "kernel":
        return None
    for path in call.paths:
        relative = relative_to(path, call.roots)
        if relative is None:
            return f"{path} is outside of the workspace"
        if effect == "read":
            continue
        for part in posixpath.normpath(relative).split("/"):
            why = defaults.PROTECTED.get(part.casefold())
            if why is not None:
                return f"{relative} is in {part}: {why}"
    return None
