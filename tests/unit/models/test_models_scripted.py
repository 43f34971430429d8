"""The scripted model, its scenario files, and the demo that ships with the package."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard.models.base import (
    AssistantMessage,
    ModelCard,
    ModelError,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    Reasoning,
    ReasoningBlock,
    Stop,
    Text,
    TextDelta,
    ThoughtDelta,
    ToolMessage,
    ToolOutput,
    ToolRequest,
    ToolSpec,
    ToolUse,
    UsageReport,
    UserMessage,
)
from callboard.models.scenario import ScenarioError
from callboard.models.scenario_file import built_in_scenario, load_scenario, parse_scenario
from callboard.models.scripted import Scripted
from callboard_rpc.common import Usage

pytestmark = pytest.mark.anyio

CARD = ModelCard(model_id="scripted/test", provider="scripted", name="test")
DEMO_TOOLS = ("list_files", "read_file", "edit_file", "run_command", "update_plan")
DEMO_PROMPT = "The test in this folder fails. Find out why, mend it, and run it again."


class Clock:
    """A sleep that only counts."""

    def __init__(self) -> None:
        self.naps: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)


def model(scenario: str, clock: Clock | None = None) -> Scripted:
    return Scripted(CARD, parse_scenario(scenario, source="test.yaml"), (clock or Clock()).sleep)


def user(text: str) -> UserMessage:
    return UserMessage(blocks=(Text(text=text),))


def spec(name: str) -> ToolSpec:
    return ToolSpec(name=name, description=name, schema={"type": "object"})


def ask(*messages: ModelMessage, **rest: Any) -> ModelRequest:
    return ModelRequest(**{"system": "", "messages": messages or (user("hi"),), **rest})


def after_tool(name: str, text: str, *, is_error: bool = False) -> tuple[ModelMessage, ...]:
    use = ToolUse(call_id="c1", name=name, arguments={})
    output = ToolOutput(call_id="c1", text=text, is_error=is_error)
    return user("go"), AssistantMessage(blocks=(use,)), ToolMessage(outputs=(output,))


async def play(scripted: Scripted, request: ModelRequest | None = None) -> list[ModelEvent]:
    return [event async for event in scripted.stream(request or ask())]


def said(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


# --- answers ----------------------------------------------------------------------------------


async def test_an_answer_is_its_steps_in_order_and_ends_with_the_fitting_stop() -> None:
    events = await play(
        model("""
default:
  - think: Hmm.
  - say: I will look.
  - call: {tool: read_file, arguments: {path: a.txt}, id: call_7}
  - usage: {input_tokens: 10, output_tokens: 2, cost: 0.5}
""")
    )
    assert events == [
        ThoughtDelta(text="Hmm."),
        ReasoningBlock(reasoning=Reasoning(text="Hmm.", provider="scripted")),
        TextDelta(text="I will look."),
        ToolRequest(call_id="call_7", name="read_file", arguments='{"path":"a.txt"}'),
        UsageReport(
            usage=Usage(requests=1, input_tokens=10, output_tokens=2, cost=0.5, currency="USD")
        ),
        Stop(reason="tool_use"),
    ]
    assert (await play(model("default: Hello.")))[-1] == Stop(reason="end_turn")


async def test_text_comes_in_chunks_at_the_named_speed() -> None:
    clock = Clock()
    scenario = "chunk: 4\nchars_per_second: 8\ndefault: [{say: abcdefghij}]"
    events = await play(model(scenario, clock))
    assert [event.text for event in events[:-1] if isinstance(event, TextDelta)] == [
        "abcd",
        "efgh",
        "ij",
    ]
    assert clock.naps == [0.5, 0.5, 0.25]


async def test_delay_ms_is_a_pause_before_each_chunk_and_wins_over_the_files_speed() -> None:
    clock = Clock()
    scenario = "chars_per_second: 8\ndefault: [{say: {text: abcdef, chunk: 3, delay_ms: 20}}]"
    await play(model(scenario, clock))
    assert clock.naps == [0.02, 0.02]


async def test_repeat_streams_thousands_of_chunks_without_a_pause_and_lets_others_run() -> None:
    clock = Clock()
    scripted = model("default: [{say: 'a longer text than a chunk ', repeat: 5000}]", clock)
    turns = 0

    async def bystander() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(bystander)
        events = await play(scripted)
        group.cancel_scope.cancel()
    assert len(events) == 5001
    assert clock.naps == []
    assert turns > 50


async def test_raw_arguments_and_doubled_ids_pass_as_they_are() -> None:
    scenario = """
default:
  - call: {tool: a, raw_arguments: '{"broken', id: same}
  - call: {tool: b, id: same}
"""
    requests = [e for e in await play(model(scenario)) if isinstance(e, ToolRequest)]
    assert [(r.call_id, r.arguments) for r in requests] == [("same", '{"broken'), ("same", "{}")]


async def test_fail_before_output_says_that_nothing_had_started() -> None:
    scenario = "default: [{fail: {kind: modelError, message: refused, http_status: 503, retryable: true, retry_after_ms: 9}}]"
    with pytest.raises(ModelError) as caught:
        await play(model(scenario))
    failure = caught.value.failure
    assert not caught.value.started
    assert (failure.kind, failure.message, failure.http_status) == ("modelError", "refused", 503)
    assert (failure.retryable, failure.retry_after_ms) == (True, 9)


async def test_fail_after_output_says_that_output_had_started() -> None:
    scripted = model("default: [{say: Half}, {fail: broken}]")
    events: list[ModelEvent] = []
    with pytest.raises(ModelError) as caught:
        async for event in scripted.stream(ask()):
            events.append(event)
    assert said(events) == "Half"
    assert caught.value.started


async def test_fail_with_times_succeeds_afterwards() -> None:
    scripted = model("default: [{fail: {message: busy, times: 2}}, {say: ok}]")
    for _ in range(2):
        with pytest.raises(ModelError):
            await play(scripted)
    assert said(await play(scripted)) == "ok"


async def test_end_early_gives_no_stop() -> None:
    events = await play(model("default: [{say: Half}, {end_early: true}, {say: never}]"))
    assert events == [TextDelta(text="Half")]


async def test_hang_says_nothing_more_until_it_is_cancelled() -> None:
    scripted = model("default: [{say: Half}, {hang: true}]")
    events: list[ModelEvent] = []
    spoke = anyio.Event()

    async def read() -> None:
        async for event in scripted.stream(ask()):
            events.append(event)
            spoke.set()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await spoke.wait()
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert events == [TextDelta(text="Half")]


async def test_a_stop_reason_can_be_named() -> None:
    events = await play(model("default: [{say: No.}, {stop: refusal}]"))
    assert events[-1] == Stop(reason="refusal")


# --- rules ------------------------------------------------------------------------------------


async def test_the_first_rule_that_matches_wins_and_the_default_takes_the_rest() -> None:
    scripted = model("""
rules:
  - {when: {last_user: WEATHER}, answer: rain}
  - {when: {last_user: weather}, answer: never}
default: no idea
""")
    assert said(await play(scripted, ask(user("the weather?")))) == "rain"
    assert said(await play(scripted, ask(user("the time?")))) == "no idea"


async def test_times_bounds_a_rule_over_the_life_of_the_model() -> None:
    scripted = model("rules: [{answer: once, times: 1}]\ndefault: then")
    assert [said(await play(scripted)) for _ in range(3)] == ["once", "then", "then"]


async def test_all_conditions_of_a_rule_must_hold() -> None:
    scripted = model(
        """
rules:
  - when: {last_user: go, system: Captain, turn: 1, step: {max: 1}, tools_include: [read_file]}
    answer: 'yes'
default: 'no'
"""
    )
    history = (user("go"), AssistantMessage(blocks=(Text(text="ok"),)))
    fits: dict[str, Any] = {"system": "Captain Haddock", "tools": (spec("read_file"),)}
    assert said(await play(scripted, ask(*history, **fits))) == "yes"
    assert said(await play(scripted, ask(*history[:1], **fits))) == "no"
    assert said(await play(scripted, ask(*history, **{**fits, "system": "x"}))) == "no"
    assert said(await play(scripted, ask(*history, **{**fits, "tools": ()}))) == "no"
    assert said(await play(scripted, ask(*history, **fits, allow_tools=False))) == "no"


async def test_turn_counts_all_answers_and_step_those_since_the_person_spoke() -> None:
    scripted = model("""
rules:
  - {when: {turn: {min: 2}, step: 0}, answer: second prompt}
default: other
""")
    answer = AssistantMessage(blocks=(Text(text="ok"),))
    assert said(await play(scripted, ask(user("a"), answer, answer, user("b")))) == "second prompt"
    assert said(await play(scripted, ask(user("a"), answer, answer))) == "other"


@pytest.mark.parametrize(
    ("when", "name", "text", "is_error", "expected"),
    [
        ("read_file", "read_file", "x", False, True),
        ("read_file", "list_files", "x", False, False),
        ("{status: error}", "read_file", "x", True, True),
        ("{status: ok}", "read_file", "x", True, False),
        ("{name: read_file, contains: HELLO}", "read_file", "say hello", False, True),
        ("{regex: '^a+$'}", "read_file", "aab", False, False),
    ],
)
async def test_last_tool_is_a_result_that_the_request_ends_with(
    when: str, name: str, text: str, is_error: bool, expected: bool
) -> None:
    scripted = model(f"rules: [{{when: {{last_tool: {when}}}, answer: hit}}]\ndefault: miss")
    messages = after_tool(name, text, is_error=is_error)
    assert (said(await play(scripted, ask(*messages))) == "hit") is expected
    assert said(await play(scripted, ask(*messages, user("stop")))) == "miss"


async def test_templates_are_filled_once_and_never_from_what_they_brought() -> None:
    scripted = model(r"""
rules:
  - when: {last_user: {regex: 'name is (?P<who>.+)'}}
    answer:
      - say: "{{match.1}}|{{ match.who }}|{{open}}x}}"
      - call: {tool: write_file, arguments: {text: "{{last_user}}", list: ["{{match.0}}", 1]}}
  - when: {last_tool: write_file}
    answer: "wrote: {{last_tool}}"
""")
    events = await play(scripted, ask(user('name is {{last_tool}}"')))
    assert said(events) == '{{last_tool}}"|{{last_tool}}"|{{x}}'
    call = next(event for event in events if isinstance(event, ToolRequest))
    assert json.loads(call.arguments) == {
        "text": 'name is {{last_tool}}"',
        "list": ['name is {{last_tool}}"', 1],
    }
    assert (
        said(await play(scripted, ask(*after_tool("write_file", "12 bytes")))) == "wrote: 12 bytes"
    )


async def test_no_rule_and_no_default_is_an_error_that_says_so() -> None:
    with pytest.raises(ModelError, match=r"test\.yaml.*default"):
        await play(model("rules: [{when: {last_user: x}, answer: y}]"))


async def test_the_same_requests_give_the_same_events() -> None:
    scenario = "chunk: 3\nrules: [{answer: [{say: abcdefg}], times: 1}]\ndefault: later"
    first, second = model(scenario), model(scenario)
    assert [await play(first) for _ in range(3)] == [await play(second) for _ in range(3)]


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "rules: [{name: greet, when: {lastuser: x}, answer: y}]",
            ["rule 1 (greet)", "lastuser", "last_user"],
        ),
        ("rules: [{answer: a}, {when: {}}]", ["rule 2", "answer"]),
        ("rules: 3", ["rules", "list"]),
        ("defalt: x", ["defalt", "default"]),
        ("{}", ["neither rules nor a default"]),
        ("- a", ["mapping"]),
        ("default: [{say: a, call: {tool: b}}]", ["default", "step 1", "exactly one"]),
        ("default: [{shout: a}]", ["step 1", "shout"]),
        ("default: [{say: 5}]", ["say", "text"]),
        ("default: [{call: {arguments: {}}}]", ["call", "tool"]),
        ("default: [{call: {tool: a, arguments: [1]}}]", ["arguments", "mapping"]),
        ("default: [{call: {tool: a, arguments: {d: 2020-01-01}}}]", ["arguments, d", "JSON"]),
        ("default: [{call: {tool: a, arguments: {}, raw_arguments: b}}]", ["not both"]),
        ("default: [{fail: {kind: nonsense}}]", ["kind", "modelError"]),
        ("default: [{stop: soon}]", ["stop", "end_turn"]),
        ("default: [{hang: 1}]", ["hang", "true"]),
        ("default: [{usage: {input_tokens: -1}}]", ["input_tokens"]),
        ("default: [{say: a, chunk: 0}]", ["chunk"]),
        ("default: [{say: a, delay_ms: 1, chars_per_second: 2}]", ["choose one"]),
        ("default: [{say: '{{env.HOME}}'}]", ["environment"]),
        ("default: [{say: '{{nothing}}'}]", ["nothing", "last_user"]),
        ("default: [{say: '{{match.1}}'}]", ["match.1", "regex"]),
        ("rules: [{when: {last_user: {regex: '('}}, answer: a}]", ["last_user, regex"]),
        ("rules: [{answer: a, times: 0}]", ["times"]),
        ("a: [", ["YAML"]),
    ],
)
def test_a_bad_scenario_is_told_with_its_file_rule_and_field(text: str, words: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, source="my.yaml")
    for word in ["my.yaml", *words]:
        assert word in str(caught.value)


def test_a_yaml_bomb_is_refused() -> None:
    lines = ["default: [{call: {tool: x, arguments: {a0: &a0 [1]"]
    lines += [f", a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(ScenarioError, match="more than"):
        parse_scenario("".join(lines) + "}}}]", source="bomb")


async def test_toml_means_the_same_as_yaml(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(
        'chunk = 2\n[[rules]]\nanswer = [{say = "abc"}]\n[rules.when]\nlast_user = "hi"\n'
    )
    events = await play(Scripted(CARD, load_scenario(path)))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["ab", "c"]


def test_a_file_that_is_no_scenario_is_named_and_none_of_it_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "private"
    path.write_text("root:secretword:0: [\n")
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert str(path) in str(caught.value)
    assert "secretword" not in str(caught.value)
    for bad in (tmp_path, tmp_path / "none", Path("/dev/zero")):
        with pytest.raises(ScenarioError):
            load_scenario(bad)


# --- the demo ---------------------------------------------------------------------------------

BROKEN = "def total(prices, tax):\n    return sum(price for price in prices) * tax\n"


class Workspace:
    """The demo's sample folder, as far as the demo's calls go."""

    def __init__(self, *, denied: str | None = None) -> None:
        self.files = {"prices.py": BROKEN, "test_prices.py": "import unittest\n"}
        self.denied = denied
        self.calls: list[str] = []

    def run(self, request: ToolRequest) -> tuple[str, bool]:
        arguments = json.loads(request.arguments)
        self.calls.append(request.name)
        if request.name == self.denied:
            return "denied by the user", True
        match request.name:
            case "list_files":
                return "\n".join(self.files), False
            case "read_file":
                return self.files[arguments["path"]], False
            case "edit_file":
                text = self.files[arguments["path"]]
                for edit in arguments["edits"]:
                    assert text.count(edit["old_text"]) == 1
                    text = text.replace(edit["old_text"], edit["new_text"])
                self.files[arguments["path"]] = text
                return "edited", False
            case "run_command":
                scope: dict[str, Any] = {}
                exec(self.files["prices.py"], scope)
                return ("OK", False) if scope["total"]([10, 5.5], 0.2) == 18.6 else ("FAILED", True)
            case _:
                assert {e["status"] for e in arguments["entries"]} <= {
                    "pending",
                    "in_progress",
                    "completed",
                }
                return "noted", False


async def converse(demo: Scripted, workspace: Workspace, prompt: str) -> str:
    """What a loop makes of it; the last answer's text."""
    messages: list[ModelMessage] = [user(prompt)]
    for _ in range(12):
        events = await play(demo, ask(*messages, tools=tuple(map(spec, DEMO_TOOLS))))
        requests = [event for event in events if isinstance(event, ToolRequest)]
        if not requests:
            return said(events)
        ids = [f"c{len(messages)}_{n}" for n in range(len(requests))]
        uses = tuple(
            ToolUse(call_id=i, name=r.name, arguments=json.loads(r.arguments))
            for i, r in zip(ids, requests, strict=True)
        )
        ran = [workspace.run(request) for request in requests]
        outputs = tuple(
            ToolOutput(call_id=i, text=text, is_error=bad)
            for i, (text, bad) in zip(ids, ran, strict=True)
        )
        messages += [AssistantMessage(blocks=uses), ToolMessage(outputs=outputs)]
    raise AssertionError("the demo does not end")


async def test_the_demo_mends_the_sample_within_twelve_seconds() -> None:
    clock, workspace = Clock(), Workspace()
    text = await converse(
        Scripted(CARD, built_in_scenario("demo"), clock.sleep), workspace, DEMO_PROMPT
    )
    assert "return round(sum(prices) * (1 + tax), 2)" in workspace.files["prices.py"]
    assert workspace.calls == [
        "update_plan",
        "list_files",
        "read_file",
        "read_file",
        "edit_file",
        "run_command",
        "update_plan",
    ]
    assert "passes" in text
    assert 2 < sum(clock.naps) < 12


@pytest.mark.parametrize("denied", ["edit_file", "run_command", "read_file", "list_files"])
async def test_the_demo_ends_honestly_when_a_call_is_denied(denied: str) -> None:
    workspace = Workspace(denied=denied)
    text = await converse(
        Scripted(CARD, built_in_scenario("demo"), Clock().sleep), workspace, DEMO_PROMPT
    )
    assert "passes" not in text


async def test_the_demo_can_be_asked_twice_in_one_session() -> None:
    demo, workspace = Scripted(CARD, built_in_scenario("demo"), Clock().sleep), Workspace()
    await converse(demo, workspace, DEMO_PROMPT)
    assert "passes" in await converse(demo, workspace, DEMO_PROMPT)


async def test_the_demo_says_what_it_is_and_the_way_to_a_real_model() -> None:
    demo = Scripted(CARD, built_in_scenario("demo"), Clock().sleep)
    text = said(await play(demo, ask(user("Write me a poem."))))
    for words in ("demo model", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "Ollama", "CALLBOARD_MODEL"):
        assert words in text
