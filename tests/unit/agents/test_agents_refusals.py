"""Every refusal that a model can run into, as a result that begins with its code (coordination 6), and the
limits on how many agents there are (5.11)."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from agents_races import tell, verb
from hypothesis import given
from hypothesis import strategies as st
from interrupts_kit import after, allow

from callboard.agents.naming import MAX_CHARS, clean_name
from callboard.host import Host
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, pending
from harness.puppets import Pause, calls, of, pauses, results, speaks

pytestmark = pytest.mark.anyio

MESSAGING = {"CALLBOARD_FEATURES": "agents.messaging"}


def spawning(**more: Any) -> tuple[str, dict[str, Any]]:
    return ("spawn_agent", {"name": "one", "message": "go", **more})


async def _asks(t: Troupe, *requested: tuple[str, Any]) -> list[Any]:
    """What a root is told of calls that it makes one after the other."""
    t.cast.requests.pop("root", None)
    t.cast.parts["root"] = [*(calls(each) for each in requested), speaks("well then")]
    root = await t.root()
    await t.say(root)
    await t.idle(root)
    ends = of(
        await t.log(root), "turn_finished"
    )  # a child that was quick has its report begin another turn
    assert {end.outcome for end in ends} == {"completed"}
    return [result.text for result in of(await t.log(root), "tool_result")]


REFUSED: Sequence[tuple[str, tuple[str, Any], str]] = (
    ("no name", ("spawn_agent", {"message": "go"}), "invalid_argument"),
    ("no message", ("spawn_agent", {"name": "one"}), "invalid_argument"),
    ("no arguments", ("spawn_agent", {}), "invalid_argument"),
    ("no object", ("spawn_agent", "[1]"), "invalid_argument"),
    ("no JSON", ("spawn_agent", "{name"), "invalid_argument"),
    ("another type", spawning(name=5), "invalid_argument"),
    ("an unknown field", spawning(nmae="x"), "invalid_argument"),
    ("a blank name", spawning(name=" \t\n"), "invalid_argument"),
    ("an empty name", spawning(name=""), "invalid_argument"),
    ("a long name", spawning(name="x" * (MAX_CHARS + 1)), "invalid_argument"),
    ("a very long name", spawning(name="x" * 100_000), "invalid_argument"),
    ("a reserved name", spawning(name="Parent"), "invalid_argument"),
    ("a blank message", spawning(message=" \n "), "invalid_argument"),
    ("an empty message", spawning(message=""), "invalid_argument"),
    ("a brief of 1 MiB", spawning(message="x" * (1 << 20)), "message_too_large"),
    ("a brief of 1 MiB in many bytes", spawning(message="é" * (1 << 19)), "message_too_large"),
    ("no such profile", spawning(profile="nobody"), "unknown_profile"),
    ("no such tool", spawning(tools=["read_file", "fly"]), "invalid_argument"),
    ("no such tools", spawning(tools=["fly__*"]), "invalid_argument"),
    ("a star for a tool", spawning(tools=["*"]), "invalid_argument"),
    ("a list that allows itself", spawning(message_allow=["two", " one "]), "invalid_argument"),
    ("a list with no name", spawning(message_allow=["\u200b"]), "invalid_argument"),
    ("no such task", spawning(task_id="tsk_none"), "unknown_task"),
    ("no such end", spawning(wait=True, on_timeout="explode"), "invalid_argument"),
    ("a negative time", spawning(wait=True, timeout_ms=-1), "invalid_argument"),
    ("a time of years", spawning(wait=True, timeout_ms=10**12), "invalid_argument"),
    ("a blank message to go on", ("continue_agent", {"agent_id": "idle", "message": " "}),
     "invalid_argument"),
    ("a blank message", ("send_agent_message", {"agent_id": "idle", "message": "\n"}),
     "invalid_argument"),
    ("a message of 1 MiB", ("continue_agent", {"agent_id": "idle", "message": "x" * (1 << 20)}),
     "message_too_large"),
    ("a blank id", ("close_agent", {"agent_id": ""}), "invalid_argument"),
    ("an id of nobody", ("close_agent", {"agent_id": "ses_0"}), "unknown_agent"),
    ("an id of nothing", ("interrupt_agent", {"agent_id": "\u202e"}), "unknown_agent"),
    ("some unknown", ("wait_agents", {"agent_ids": ["idle", "nobody"]}), "unknown_agent"),
    ("a negative wait", ("wait_agents", {"timeout_ms": -1}), "invalid_argument"),
    ("a wait in words", ("wait_agents", {"timeout_ms": "long"}), "invalid_argument"),
    ("too many to wait for", ("wait_agents", {"agent_ids": ["x"] * 101}), "invalid_argument"),
    ("a list of something", ("list_agents", {"of": "all"}), "invalid_argument"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("call", "code"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
async def test_coordination_6_a_refusal_begins_with_its_code_and_leaves_nothing(
    tmp_path: Path, call: tuple[str, Any], code: str
) -> None:
    async with troupe(tmp_path, environ=MESSAGING) as t:
        idle = [("spawn_agent", {"name": "idle", "message": "rest", "wait": True})]
        before = len(t.host.log.glance("SELECT 1 FROM heads"))
        *_, said = await _asks(t, *idle, call)
        assert said.startswith(f"{code}: "), said
        assert len(said) < 4_000
        assert len(t.host.log.glance("SELECT 1 FROM heads")) == before + 2


async def test_coordination_6_the_codes_of_a_graph_that_is_full(tmp_path: Path) -> None:
    """What depends on who is there: names, closed ones, limits, depth."""
    environ = {"CALLBOARD_AGENTS_MAX_OPEN": "1"}
    async with troupe(tmp_path, environ=environ) as t:
        said = await _asks(
            t,
            spawning(),
            spawning(message="once more"),
            spawning(name="two"),
            ("close_agent", {"agent_id": "one"}),
            ("continue_agent", {"agent_id": "one", "message": "go on"}),
            ("interrupt_agent", {"agent_id": "one"}),
            spawning(message="a third time"),
        )
        codes = [text.partition(":")[0] for text in said]
        assert codes[1:3] == ["name_in_use", "limit_reached"]
        assert codes[4:6] == ["agent_closed", "agent_closed"]
        assert '"starting"' in said[0] and '"starting"' in said[6]
        assert "agents.max_open" in said[2] and "close one" in said[2]
    async with troupe(tmp_path / "other", environ={"CALLBOARD_AGENTS_MAX_DEPTH": "0"}) as t:
        (said_of_depth,) = await _asks(t, spawning())
        assert said_of_depth.startswith("depth_exceeded: ")


async def test_coordination_6_an_agent_that_nobody_can_run_is_there_and_failed(
    tmp_path: Path,
) -> None:
    """The model of the child is gone when it begins: its report says so (5.2, start failure)."""
    async with troupe(tmp_path) as t:
        _breaks_for_children(t.host)
        said = await _asks(t, spawning(wait=True))
        assert "it failed: no provider serves" in said[0]


def _breaks_for_children(host: Host) -> None:
    known = host.catalog.resolve
    asked = 0

    async def resolve(model_id: str | None = None, *, text_tool_calls: bool = False) -> Any:
        nonlocal asked
        asked += 1
        if asked > 1:  # the root's own turn is the first to ask
            raise CallboardError(
                "modelUnavailable", "no provider serves it", data={"reason": "unknown"}
            )
        return await known(model_id, text_tool_calls=text_tool_calls)

    host.catalog.resolve = resolve  # type: ignore[method-assign]


# --- names --------------------------------------------------------------------------------------

SPACES = [c for c in map(chr, range(0x110000)) if c.isspace()]
CONTROLS = [*map(chr, (*range(0x20), *range(0x7F, 0xA0)))]
UNSEEN = [
    *"\u200b\u200e\u202e\u2060\ufeff\u00ad\u061c\U000e0041\ud800\ue000\u3164\u115f\u2800\u034f"
]


@pytest.mark.parametrize("space", SPACES, ids=lambda c: f"U+{ord(c):04X}")
def test_names_white_space_at_the_ends_goes_and_inside_is_one_space_or_refused(space: str) -> None:
    assert clean_name(f"{space}one{space}{space}") == "one"
    for blank in (space, space * 3):
        with pytest.raises(CallboardError, match="blank"):
            clean_name(blank)
    inside = f"one{space}{space}two"
    if unicodedata.category(space) == "Zs":
        assert clean_name(inside) == "one two"
    else:
        with pytest.raises(CallboardError, match=f"U\\+{ord(space):04X}"):
            clean_name(inside)


@pytest.mark.parametrize("char", [*CONTROLS, *UNSEEN], ids=lambda c: f"U+{ord(c):04X}")
def test_names_hold_nothing_that_nobody_can_see(char: str) -> None:
    if char == "\ud800":  # half a character becomes what can be kept
        assert clean_name(f"one{char}") == "one?"
        return
    with pytest.raises(CallboardError) as refused:
        clean_name(f"one{char}two")
    assert refused.value.kind == "invalidParams"
    if not char.isspace():
        for hidden in (char, f"one{char}", f"{char}one"):
            with pytest.raises(CallboardError):
                clean_name(hidden)


IGNORABLE = [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
]  # fmt: skip
"""All that is Default_Ignorable_Code_Point in Unicode: what shows nothing where it is not known."""

NOTHING = [
    *(chr(code) for first, last in IGNORABLE for code in range(first, last + 1)),
    *"\u2800\U0001d159\U00016fe4",  # blank by their looks alone
]


def _kept(name: str) -> str | None:
    try:
        return clean_name(name)
    except CallboardError:
        return None


def test_names_there_are_none_that_consist_of_or_differ_by_what_shows_nothing() -> None:
    assert len(NOTHING) > 4_000
    for char in NOTHING:
        for name in (char, char * 3, f"one{char}", f"{char}one", f"o{char}ne", f"one {char} two"):
            assert _kept(name) is None, f"U+{ord(char):04X}"
        for seen in ("\u2764", "#", "7", "=", "\U0001f44d\U0001f3fd"):
            assert _kept(f"{seen}{char}") in (None, seen), f"U+{ord(char):04X}"


@pytest.mark.parametrize(
    "plain", ["\u2764", "1\u20e3", "\u26a0 check", "\u2194", "\U0001f3fd", "*"]
)
def test_names_of_emoji_are_the_same_with_and_without_their_colours(plain: str) -> None:
    """As people write them, with U+FE0F behind a symbol or a keycap; anywhere else it is refused."""
    assert clean_name(plain) == plain
    assert clean_name(f"{plain[0]}\ufe0f{plain[1:]}") == plain
    for wrong in (f"\ufe0f{plain}", f"{plain[0]}\ufe0f\ufe0f{plain[1:]}", f"{plain} a\ufe0f"):
        assert _kept(wrong) is None
    assert clean_name("=\ufe0f\u0338") == clean_name("=\u0338") == "\u2260"


@pytest.mark.parametrize("name", ["parent", "ROOT", " Group ", "Pa\u200brent"])
def test_names_that_mean_somebody_else_are_refused(name: str) -> None:
    with pytest.raises(CallboardError):
        clean_name(name)


def test_names_that_look_the_same_are_the_same() -> None:
    assert clean_name("cafe\u0301") == clean_name("caf\u00e9") == "café"
    assert clean_name("a  b") == clean_name("a\u00a0b") == "a b"
    assert clean_name("x" * MAX_CHARS) == "x" * MAX_CHARS
    with pytest.raises(CallboardError, match="64 are allowed"):
        clean_name("x" * (MAX_CHARS + 1))


@given(st.text(max_size=100))
def test_names_that_are_kept_stay_as_they_are(text: str) -> None:
    try:
        name = clean_name(text)
    except CallboardError as refused:
        assert refused.kind == "invalidParams"
        return
    assert clean_name(name) == name and name.strip() == name
    assert 1 <= len(name) <= MAX_CHARS and "\n" not in name
    name.encode()


# --- limits -------------------------------------------------------------------------------------


async def test_limits_above_max_running_an_agent_waits_in_starting_and_begins_in_its_turn(
    tmp_path: Path,
) -> None:
    names = ["d", "c", "b", "a"]  # in an order that is not that of names
    holds = {name: Pause() for name in names}
    cast = Cast(**{name: [pauses(hold, "done")] for name, hold in holds.items()})
    async with troupe(tmp_path, cast, environ={"CALLBOARD_AGENTS_MAX_RUNNING": "2"}) as t:
        root = await t.root()
        for name in names:
            await t.spawn(root, name)
        await holds["d"].came()
        await holds["c"].came()
        assert [t.child(root, n).status for n in names] == ["running"] * 2 + ["starting"] * 2
        holds["d"].open.set()
        await holds["b"].came()
        assert t.child(root, "a").status == "starting" and not holds["a"].reached.is_set()
        holds["c"].open.set()
        await holds["a"].came()
        for hold in holds.values():
            hold.open.set()
        for name in names:
            assert (await t.ended(t.child(root, name))).status == "completed"


async def test_limits_one_that_waits_for_an_approval_after_a_restart_takes_no_slot(
    tmp_path: Path,
) -> None:
    allow(tmp_path, execute="ask")
    environ = {"CALLBOARD_AGENTS_MAX_RUNNING": "1"}
    cast = Cast(one=[calls(("run_command", {"command": "true"}))])
    async with troupe(tmp_path, cast, environ=environ) as t:
        root = await t.root()
        one = await t.spawn(root, "one")
        await pending(t.host)
    async with troupe(tmp_path, cast, environ=environ) as t:
        assert t.child(root, "one").status == "running"
        assert (await t.ended(await t.spawn(root, "two"))).status == "completed"
        (asked,), _ = await t.host.approvals.page(state="pending")
        await t.host.approvals.answer(asked.approval_id, "allow_once", by=CLIENT, via="method")
        assert (await t.ended(one)).status == "completed"


async def test_limits_a_slot_is_free_when_one_is_closed_interrupted_or_deleted(
    tmp_path: Path,
) -> None:
    for how in ("close", "interrupt", "delete"):
        first, second = Pause(), Pause()
        cast = Cast(one=[pauses(first, "never")], two=[pauses(second, "done")])
        environ = {"CALLBOARD_AGENTS_MAX_RUNNING": "1"}
        async with troupe(tmp_path / how, cast, environ=environ) as t:
            root = await t.root()
            one = await t.spawn(root, "one")
            await first.came()
            two = await t.spawn(root, "two")
            assert t.child(root, "two").status == "starting"
            if how == "close":
                await t.agents.close(one.agent_id, by=CLIENT)
            elif how == "interrupt":
                await t.agents.interrupt(one.agent_id, verb("interrupt"))
            else:
                await t.host.sessions.delete(one.agent_id, by=CLIENT)
            await second.came()
            second.open.set()
            await t.ended(two)


async def test_limits_a_slot_that_another_host_frees_is_taken_though_nobody_looks_on(
    tmp_path: Path,
) -> None:
    first, second = Pause(), Pause()
    cast = Cast(one=[pauses(first, "done")], two=[pauses(second, "done")])
    environ = {"CALLBOARD_AGENTS_MAX_RUNNING": "1"}
    async with (
        troupe(tmp_path, cast, environ=environ) as here,
        troupe(tmp_path, cast, environ=environ) as there,
    ):
        root = await here.root()
        one = await here.spawn(root, "one")
        await first.came()
        two = await there.spawn(root, "two")
        assert there.child(root, "two").status == "starting"
        first.open.set()
        await here.ended(one)
        await second.came()
        assert there.host.dispatcher.live(two.agent_id) is not None
        second.open.set()
        await there.ended(two)


async def test_limits_one_that_is_stopped_while_it_waits_keeps_nobody_else_waiting(
    tmp_path: Path,
) -> None:
    first = Pause()
    cast = Cast(one=[pauses(first, "done")])
    async with troupe(tmp_path, cast, environ={"CALLBOARD_AGENTS_MAX_RUNNING": "1"}) as t:
        root = await t.root()
        one = await t.spawn(root, "one")
        await first.came()
        two, three = await t.spawn(root, "two"), await t.spawn(root, "three")
        done = await t.agents.interrupt(two.agent_id, verb("cancel", "not needed"))
        assert done.outcome == "aborted"
        assert t.child(root, "two").status == "interrupted"
        first.open.set()
        await t.ended(one)
        assert (await t.ended(three)).status == "completed"
        assert not cast.requests["two"]
        await tell(t, two.agent_id, "after all")
        await t.idle(two.agent_id)
        assert "work" in cast.heard("two") and "after all" in cast.heard("two")


async def test_limits_a_steer_to_one_that_waits_for_its_turn_is_told_when_it_begins(
    tmp_path: Path,
) -> None:
    first = Pause()
    cast = Cast(one=[after(first, speaks("done"))])
    async with troupe(tmp_path, cast, environ={"CALLBOARD_AGENTS_MAX_RUNNING": "1"}) as t:
        root = await t.root()
        await t.spawn(root, "one")
        await first.came()
        two = await t.spawn(root, "two")
        done = await t.agents.interrupt(two.agent_id, verb("steer", "to the left"))
        assert (done.outcome, done.pending) == ("delivered", "steer")
        first.open.set()
        await t.ended(two)
        assert "to the left" in t.cast.heard("two", 0)
        assert results(await t.log(two.agent_id)) == []
