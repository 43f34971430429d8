"""Scenarios: what the scripted model says, as data.

A scenario is a YAML or TOML file::

    description: Greets, looks at a file, and answers everything else with one line.
    chunk: 12                    # characters a delta
    chars_per_second: 300        # or delay_ms, the pause before each delta; neither: no pauses

    rules:                       # the first rule that matches wins
      - name: greet
        when:                    # everything that is named here must hold
          last_user: {regex: "my name is (\\w+)"}
        times: 1                 # this rule may serve once
        answer:
          - think: A person, with a name.
          - say: Hello {{match.1}}, let me see what is here.
          - call: {tool: list_files, arguments: {path: .}}
      - when:
          last_tool: {name: list_files, status: ok, contains: README}
        answer:
          - say: There is a README.
          - usage: {input_tokens: 120, output_tokens: 12}
      - when: {last_user: overload}
        answer:
          - fail: {kind: modelError, message: Overloaded, retryable: true, http_status: 529, times: 2}
          - say: Third time lucky.

    default:
      - say: I only know what my scenario holds.

Conditions of ``when``: ``last_user`` and ``system`` (a text to be contained, or ``{contains, regex}``;
``contains`` ignores case, ``regex`` does not unless it says ``(?i)``), ``last_tool`` (a name, or
``{name, status: ok|error, contains, regex}``: one of the results that the request ends with), ``turn``
(model answers in the request so far) and ``step`` (those since the last user message), each a number or
``{min, max}``, and ``tools_include`` (names that may be called in this request).

Steps of an answer: ``say`` and ``think`` (text, with ``chunk``, ``chars_per_second``, ``delay_ms`` and
``repeat`` beside it or ``{text, ...}``), ``call`` ``{tool, arguments | raw_arguments, id}``, ``usage``,
``wait_ms``, ``fail`` ``{kind, message, retryable, http_status, retry_after_ms, times}`` (with ``times``
the first uses fail and later ones pass over it), ``hang: true``, ``end_early: true`` (the stream just
ends) and ``stop`` (a stop reason; by default what the answer calls for).

Templates in texts and arguments: ``{{last_user}}``, ``{{last_tool}}``, ``{{match.1}}`` (a group of the
rule's regex, by number or name) and ``{{open}}`` for two literal braces.
"""

import re
from typing import Literal, TypeAlias

from attrs import frozen

from callboard.models.base import StopReason
from callboard_rpc.common import Failure, Json, Usage

TEMPLATE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
"""A place to be filled in; group 1 is its name."""


class ScenarioError(ValueError):
    """A scenario cannot be used; the text names the file, the rule, the field and what is allowed."""

    def __init__(self, file: str, where: str, problem: str) -> None:
        super().__init__(f"{file}: {where}: {problem}" if where else f"{file}: {problem}")


# --- conditions -------------------------------------------------------------------------------


@frozen(kw_only=True)
class TextTest:
    """Both must hold where both are given. `contains` is in lower case."""

    contains: str | None = None
    regex: re.Pattern[str] | None = None


@frozen(kw_only=True)
class ToolTest:
    name: str | None = None
    status: Literal["ok", "error"] | None = None
    text: TextTest = TextTest()


@frozen(kw_only=True)
class NumberTest:
    """Inclusive bounds."""

    minimum: int = 0
    maximum: int | None = None


@frozen(kw_only=True)
class When:
    """Everything that is given must hold; nothing given matches every request."""

    last_user: TextTest | None = None
    last_tool: ToolTest | None = None
    system: TextTest | None = None
    turn: NumberTest | None = None
    step: NumberTest | None = None
    tools_include: tuple[str, ...] = ()


# --- answers ----------------------------------------------------------------------------------


@frozen(kw_only=True)
class Pace:
    """How a text is streamed: `chunk` characters a delta (0: all at once), a pause before each.

    The pause is `delay_ms`, or what `chars_per_second` makes of a chunk's length.
    """

    chunk: int = 16
    delay_ms: float | None = None
    chars_per_second: float | None = None

    def delay_s(self, length: int) -> float:
        if self.delay_ms is not None:
            return self.delay_ms / 1000
        return length / self.chars_per_second if self.chars_per_second else 0.0


@frozen(kw_only=True)
class Say:
    """Streams `text`, `repeat` times over."""

    text: str
    kind: Literal["answer", "thought"] = "answer"
    pace: Pace = Pace()
    repeat: int = 1


@frozen(kw_only=True)
class Call:
    """`arguments` is an object or, for garbage on purpose, the raw text."""

    tool: str
    arguments: Json | str
    call_id: str | None = None


@frozen(kw_only=True)
class ReportUsage:
    usage: Usage


@frozen(kw_only=True)
class Wait:
    ms: float


@frozen(kw_only=True)
class Fail:
    """Ends the stream with an error; with `times`, only the first so many uses of this step do."""

    failure: Failure
    times: int | None = None


@frozen(kw_only=True)
class Hang:
    """Says nothing more until the request is cancelled."""


@frozen(kw_only=True)
class EndEarly:
    """The stream ends without a `Stop`."""


@frozen(kw_only=True)
class StopWith:
    reason: StopReason


Step: TypeAlias = Say | Call | ReportUsage | Wait | Fail | Hang | EndEarly | StopWith


@frozen(kw_only=True)
class Rule:
    """`times` bounds how often the rule may serve; None is without bound."""

    name: str
    answer: tuple[Step, ...]
    when: When = When()
    times: int | None = None


@frozen(kw_only=True)
class Scenario:
    """`source` is what errors call it: a path, or the name of a built-in one."""

    source: str
    rules: tuple[Rule, ...]
    description: str = ""
