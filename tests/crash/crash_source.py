"""Which points there are, by the source: every commit is three by itself, the others are called."""

import ast
from collections.abc import Iterator
from pathlib import Path

import callboard

ROOT = Path(callboard.__file__).parent
_SUBMITTING = ("transact", "submit")
_WORDS = ("point(", "transact", "submit", "Transaction", "lambda tx")
"""One of them is in every file that matters; to parse them all takes long."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _files() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text("utf-8")
        if any(word in text for word in _WORDS):
            yield path.parent.name, ast.parse(text)


def _called(node: ast.AST) -> str:
    """The last name of what a call calls."""
    if isinstance(node, ast.Call):
        match node.func:
            case ast.Attribute(attr=name) | ast.Name(id=name):
                return name
            case _:
                pass
    return ""


def points() -> set[str]:
    """The names of all ``point("...")`` calls."""
    found: set[str] = set()
    for _, tree in _files():
        for node in ast.walk(tree):
            if _called(node) == "point" and isinstance(node, ast.Call):
                match node.args:
                    case [ast.Constant(value=str(name))]:
                        found.add(name)
                    case [ast.JoinedStr()]:  # the stages of a commit
                        pass
                    case _:
                        raise AssertionError(f"a point without a plain name: {ast.unparse(node)}")
    return found


def commits() -> set[str]:
    """The names that transaction functions have, as `callboard.log.faultpoints.commit_name` makes
    them: of those that are written inside of others, and of methods and functions that are submitted.
    Too many rather than too few: some are parts of others' transactions."""
    found: set[str] = set()
    for folder, tree in _files():
        for outer in _functions(tree):
            for node in ast.walk(outer):
                if node is not outer and _is_transaction(node):
                    found.add(f"{folder}.{outer.name.lstrip('_')}")
                if isinstance(node, ast.Call) and _called(node) in _SUBMITTING and node.args:
                    match node.args[0]:
                        case ast.Attribute(attr=name) if not name.startswith("__"):
                            found.add(f"{folder}.{name.lstrip('_')}")
                        case _:
                            pass
    return found


def _functions(tree: ast.Module) -> Iterator[Function]:
    """Functions and methods, without those inside of others."""
    for node in tree.body:
        for each in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(each, Function):
                yield each


def _is_transaction(node: ast.AST) -> bool:
    if not isinstance(node, Function | ast.Lambda) or not node.args.args:
        return False
    first = node.args.args[0]
    return first.arg in ("tx", "transaction") or (
        first.annotation is not None and "Transaction" in ast.unparse(first.annotation)
    )
