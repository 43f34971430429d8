"""There is one way to start a run: a durable trigger, then the dispatcher (ARCHITECTURE, Invariants)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = Path(__file__).resolve().parents[3] / "server"

Sources = dict[str, ast.Module]
"""The modules of the server by their dotted names."""


@pytest.fixture(scope="module")
def sources() -> Sources:
    found: Sources = {}
    for path in sorted((SERVER / "callboard").rglob("*.py")):
        name = ".".join(path.relative_to(SERVER).with_suffix("").parts)
        found[name] = ast.parse(path.read_text("utf-8"), str(path))
    assert len(found) > 100
    return found


def _brought(module: str, tree: ast.Module) -> Iterator[str]:
    """The dotted names of all that a module imports, wherever in it, modules and what is in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _importers(sources: Sources, name: str) -> set[str]:
    return {
        module
        for module, tree in sources.items()
        if any(each == name or each.startswith(f"{name}.") for each in _brought(module, tree))
    }


def _called(node: ast.Call) -> str | None:
    """The last name of what is called: `steps` of ``steps(...)``, `_runner` of ``self._runner(...)``."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def _callers(sources: Sources, name: str) -> list[str]:
    """The functions in which something of this name is called, ``module:function``, one for each call."""

    def calls(module: str, node: ast.AST, within: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            inside = within
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = child.name
            elif isinstance(child, ast.Call) and _called(child) == name:
                yield f"{module}:{within}"
            yield from calls(module, child, inside)

    return [each for module, tree in sources.items() for each in calls(module, tree, "")]


@pytest.mark.parametrize(
    ("part", "importers"),
    [
        ("callboard.turns.loop", {"callboard.turns.run"}),
        ("callboard.turns.run", {"callboard.sessions.runner"}),
        ("callboard.sessions.runner.TurnRunner", {"callboard.host"}),
        ("callboard.sessions.beginning.begin", {"callboard.sessions.dispatch"}),
        ("callboard.sessions.beginning.begin_selected", {"callboard.sessions.dispatch"}),
    ],
)
def test_messaging_18_each_step_to_the_loop_is_known_to_the_one_before_it_alone(
    sources: Sources, part: str, importers: set[str]
) -> None:
    assert _importers(sources, part) == importers


@pytest.mark.parametrize(
    ("module", "function", "callers"),
    [
        # from the loop up to the dispatcher's two doors; what is private is looked for in its module
        ("callboard.turns.run", "steps", ["_drive"]),
        ("callboard.turns.run", "drive", ["_drive"]),
        ("callboard.turns.run", "_drive", ["run"]),
        ("callboard.sessions.runner", "run", ["__call__"]),
        ("callboard.sessions.dispatch", "_runner", ["_supervise"]),
        ("callboard.sessions.dispatch", "_supervise", ["_launch"]),
        ("callboard.sessions.dispatch", "_launch", ["_wake", "run_selected"]),
        ("callboard.host", "TurnRunner", ["_compose"]),
    ],
)
def test_messaging_18_each_step_to_the_loop_is_taken_in_one_place(
    sources: Sources, module: str, function: str, callers: list[str]
) -> None:
    found = _callers({module: sources[module]}, function)
    assert found == [f"{module}:{caller}" for caller in callers]


def test_messaging_18_only_the_transaction_that_takes_the_session_says_that_a_turn_runs(
    sources: Sources,
) -> None:
    assert _callers(sources, "TurnStarted") == ["callboard.sessions.beginning:_started"]
    assert _callers(sources, "TurnResumed") == ["callboard.sessions.beginning:_resume"]


def test_the_search_finds_an_import_and_a_call_wherever_they_hide() -> None:
    """A module that starts a turn by itself, in ways in which one might."""
    text = """
def handler():
    from ..turns import run as loop
    async def inner():
        await loop.run(None)
"""
    sources = {"callboard.rpc.sly": ast.parse(text)}
    assert _importers(sources, "callboard.turns.run") == {"callboard.rpc.sly"}
    assert _callers(sources, "run") == ["callboard.rpc.sly:inner"]
