"""The scripted model: answers by a scenario, for tests, demos and work without a network.

It is as strict about its form as a real one (deltas, reasoning blocks, calls, usage, a stop) and
deterministic: the same scenario and the same requests give the same events. What it counts (``times``)
lives in the instance and is shared by all sessions that use it. How to write a scenario: `scenario`.
"""

import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import cast

import anyio
import anyio.lowlevel
import orjson
from attrs import frozen

from callboard.models.base import (
    AssistantMessage,
    ModelCard,
    ModelError,
    ModelEvent,
    ModelRequest,
    Reasoning,
    ReasoningBlock,
    Stop,
    StopReason,
    Text,
    TextDelta,
    ThoughtDelta,
    ToolMessage,
    ToolOutput,
    ToolRequest,
    ToolUse,
    UsageReport,
    UserMessage,
)
from callboard.models.scenario import (
    TEMPLATE,
    Call,
    EndEarly,
    Fail,
    Hang,
    NumberTest,
    ReportUsage,
    Rule,
    Say,
    Scenario,
    StopWith,
    TextTest,
    ToolTest,
    Wait,
    When,
)
from callboard_rpc.common import Failure

FORMAT = "scripted"
"""The `Reasoning.provider` of what this model thought."""

_BREATH = 64
"""So many deltas without a pause, then the event loop has its turn."""


class Scripted:
    """A model that follows `scenario`. `sleep` takes seconds; pauses go through it."""

    def __init__(
        self,
        card: ModelCard,
        scenario: Scenario,
        sleep: Callable[[float], Awaitable[object]] = anyio.sleep,
    ) -> None:
        self._card = card
        self._scenario = scenario
        self._sleep = sleep
        self._served: Counter[int] = Counter()
        self._failed: Counter[tuple[int, int]] = Counter()

    @property
    def card(self) -> ModelCard:
        return self._card

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The scenario's answer to `request`. Raises `ModelError` where a step or no rule says so."""
        await anyio.lowlevel.checkpoint()
        view = _look_at(request)
        number, rule, found = self._choose(view)
        called = started = False
        reason: StopReason | None = None
        for place, step in enumerate(rule.answer):
            match step:
                case Say():
                    text = found.fill(step.text)
                    for sent, delta in enumerate(_deltas(step, text), start=1):
                        await self._pause(step.pace.delay_s(len(delta.text)), sent)
                        started = True
                        yield delta
                    if step.kind == "thought" and text:
                        thought = Reasoning(text=text * step.repeat, provider=FORMAT)
                        yield ReasoningBlock(reasoning=thought)
                case Call():
                    called = started = True
                    yield ToolRequest(
                        call_id=step.call_id, name=step.tool, arguments=_arguments(step, found)
                    )
                case ReportUsage():
                    yield UsageReport(usage=step.usage)
                case Wait():
                    await self._sleep(step.ms / 1000)
                case Fail():
                    self._failed[number, place] += 1
                    if step.times is None or self._failed[number, place] <= step.times:
                        raise ModelError(step.failure, started=started)
                case Hang():
                    await anyio.sleep_forever()
                case EndEarly():
                    return
                case StopWith():
                    reason = step.reason
        yield Stop(reason=reason or ("tool_use" if called else "end_turn"))

    def _choose(self, view: "_View") -> tuple[int, Rule, "_Found"]:
        for number, rule in enumerate(self._scenario.rules):
            if rule.times is not None and self._served[number] >= rule.times:
                continue
            found = _match(rule.when, view)
            if found is not None:
                self._served[number] += 1
                return number, rule, found
        message = (
            f"no rule of the scenario {self._scenario.source} matches this request; "
            "give the scenario a default"
        )
        raise ModelError(Failure(kind="modelError", message=message, provider=FORMAT))

    async def _pause(self, seconds: float, sent: int) -> None:
        if seconds > 0:
            await self._sleep(seconds)
        elif sent % _BREATH == 0:
            await anyio.lowlevel.checkpoint()


def _deltas(step: Say, text: str) -> Iterator[TextDelta | ThoughtDelta]:
    make = TextDelta if step.kind == "answer" else ThoughtDelta
    for _ in range(step.repeat):
        for piece in _pieces(text, step.pace.chunk):
            yield make(text=piece)


def _pieces(text: str, size: int) -> Iterator[str]:
    size = size or max(1, len(text))
    return (text[start : start + size] for start in range(0, len(text), size))


def _arguments(step: Call, found: "_Found") -> str:
    if isinstance(step.arguments, str):
        return found.fill(step.arguments)
    return orjson.dumps(_filled(step.arguments, found)).decode()


def _filled(value: object, found: "_Found") -> object:
    match value:
        case str():
            return found.fill(value)
        case dict():
            fields = cast("dict[str, object]", value)
            return {name: _filled(item, found) for name, item in fields.items()}
        case list():
            return [_filled(item, found) for item in cast("list[object]", value)]
        case _:
            return value


# --- what a request looks like to a rule ------------------------------------------------------


@frozen(kw_only=True)
class _Result:
    name: str
    output: ToolOutput


@frozen(kw_only=True)
class _View:
    """`results` are those that the request ends with, none when a person spoke after them."""

    last_user: str
    results: tuple[_Result, ...]
    system: str
    turn: int
    step: int
    tools: frozenset[str]


def _look_at(request: ModelRequest) -> _View:
    last_user = ""
    turn = step = 0
    names: dict[str, str] = {}
    results: tuple[_Result, ...] = ()
    for message in request.messages:
        results = ()
        match message:
            case UserMessage():
                texts = [block.text for block in message.blocks if isinstance(block, Text)]
                last_user, step = "\n".join(texts), 0
            case AssistantMessage():
                turn, step = turn + 1, step + 1
                uses = [block for block in message.blocks if isinstance(block, ToolUse)]
                names.update({use.call_id: use.name for use in uses})
            case ToolMessage():
                results = tuple(
                    _Result(name=names.get(output.call_id, ""), output=output)
                    for output in message.outputs
                )
    return _View(
        last_user=last_user,
        results=results,
        system=request.system,
        turn=turn,
        step=step,
        tools=frozenset(tool.name for tool in request.tools if request.allow_tools),
    )


@frozen(kw_only=True)
class _Found:
    """What templates may refer to."""

    last_user: str
    last_tool: str
    groups: dict[str, str]

    def fill(self, text: str) -> str:
        return TEMPLATE.sub(self._value, text) if "{{" in text else text

    def _value(self, found: re.Match[str]) -> str:
        name = found[1]
        if name.startswith("match."):
            return self.groups.get(name[6:], "")
        values = {"last_user": self.last_user, "last_tool": self.last_tool, "open": "{{"}
        return values[name]


def _match(when: When, view: _View) -> _Found | None:
    groups: dict[str, str] = {}
    last_tool = view.results[-1].output.text if view.results else ""
    if not (_within(when.turn, view.turn) and _within(when.step, view.step)):
        return None
    if not view.tools.issuperset(when.tools_include):
        return None
    if not (_holds(when.system, view.system, groups)):
        return None
    if not (_holds(when.last_user, view.last_user, groups)):
        return None
    if when.last_tool is not None:
        hit = next((r for r in view.results if _is(when.last_tool, r, groups)), None)
        if hit is None:
            return None
        last_tool = hit.output.text
    return _Found(last_user=view.last_user, last_tool=last_tool, groups=groups)


def _within(test: NumberTest | None, number: int) -> bool:
    if test is None:
        return True
    return test.minimum <= number and (test.maximum is None or number <= test.maximum)


def _holds(test: TextTest | None, text: str, groups: dict[str, str]) -> bool:
    """Whether the test holds; what its expression found is added to `groups`."""
    if test is None:
        return True
    if test.contains is not None and test.contains not in text.casefold():
        return False
    if test.regex is None:
        return True
    found = test.regex.search(text)
    if found is None:
        return False
    groups["0"] = found[0]
    groups.update({str(n): value or "" for n, value in enumerate(found.groups(), start=1)})
    groups.update({name: value or "" for name, value in found.groupdict().items()})
    return True


def _is(test: ToolTest, result: _Result, groups: dict[str, str]) -> bool:
    if test.name is not None and test.name != result.name:
        return False
    if test.status is not None and (test.status == "error") != result.output.is_error:
        return False
    return _holds(test.text, result.output.text, groups)
