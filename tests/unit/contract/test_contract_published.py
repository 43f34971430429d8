"""What is published is what the classes say, in a checkout and in a wheel."""

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import get_args

import orjson
import pytest

from callboard_rpc import published
from callboard_rpc.errors import ERRORS
from callboard_rpc.events import EVENT_TYPES
from callboard_rpc.generator.documents import documents
from callboard_rpc.methods import METHODS

ROOT = Path(__file__).resolve().parents[3]
FORMATS = get_args(published.Format)
READ_ALL = (
    "import callboard_rpc, sys; from callboard_rpc import published; print(callboard_rpc.__file__);"
    f"[sys.stdout.write(published.read(f)) for f in {FORMATS!r}];"
    "assert not [m for m in sys.modules if 'generator' in m], 'the generator is at run time'"
)


@pytest.fixture
def generate() -> ModuleType:
    """The script behind `make schema`."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "rpc_schema" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_generated_documents_are_current(generate: ModuleType) -> None:
    assert generate.stale(generate.GENERATED, documents()) == []


def test_staleness_is_noticed_whatever_its_form(generate: ModuleType, tmp_path: Path) -> None:
    wanted = {"a.json": "{}\n", "lua/b.lua": "return {}\n"}
    assert generate.stale(tmp_path, wanted) == ["a.json", "lua/b.lua"]
    generate.write(tmp_path, wanted)
    assert generate.stale(tmp_path, wanted) == []
    (tmp_path / "a.json").write_text("{}\r\n", newline="")
    (tmp_path / "left_over.json").write_text("{}")
    assert generate.stale(tmp_path, wanted) == ["a.json", "left_over.json"]
    generate.write(tmp_path, wanted)
    assert generate.stale(tmp_path, wanted) == []


def test_the_copies_that_clients_carry_are_current(generate: ModuleType) -> None:
    assert generate.stale_copies(ROOT, documents()) == {}


def test_a_copy_that_is_stale_or_missing_is_noticed(generate: ModuleType, tmp_path: Path) -> None:
    wanted = dict.fromkeys(generate.COPIES, "-- new\n")
    (copy,) = generate.stale_copies(tmp_path, wanted)
    generate.write_copies(tmp_path, wanted)
    assert (tmp_path / copy).read_text() == "-- new\n"
    assert generate.stale_copies(tmp_path, wanted) == {}
    (tmp_path / copy).write_text("-- old\n")
    assert generate.stale_copies(tmp_path, wanted) == {copy: "-- new\n"}


def test_generating_is_deterministic() -> None:
    code = (
        "import hashlib, json; from callboard_rpc.generator.documents import documents;"
        "print(hashlib.sha256(json.dumps(documents()).encode()).hexdigest())"
    )
    assert python(code, PYTHONHASHSEED="1") == python(code, PYTHONHASHSEED="2")


def test_a_checkout_can_read_what_it_publishes() -> None:
    module, _, texts = python(READ_ALL).partition("\n")
    assert Path(module).is_relative_to(ROOT)
    assert texts == "".join(published.read(f) for f in FORMATS)


def test_a_wheel_carries_what_is_published_and_not_the_generator(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert [n for n in archive.namelist() if "generator" in n] == []
        archive.extractall(tmp_path / "site")
    module, _, texts = python(READ_ALL, PYTHONPATH=str(tmp_path / "site")).partition("\n")
    assert Path(module).is_relative_to(tmp_path)
    assert texts == "".join(published.read(f) for f in FORMATS)


@pytest.mark.parametrize("name", ["typescript", "lua"])
def test_other_languages_get_every_type_method_and_error(name: published.Format) -> None:
    text = published.read(name)
    types = orjson.loads(published.read("json"))["$defs"].keys()
    assert [t for t in types if t not in text] == []
    assert [m for m in METHODS if f'"{m}"' not in text] == []
    assert [e for e in EVENT_TYPES if e not in text] == []
    assert [
        k for k, spec in ERRORS.items() if f"{k}: {spec.code}" not in text.replace(" =", ":")
    ] == []


def test_enums_that_a_server_sends_are_open_and_those_of_a_request_are_closed() -> None:
    defs = orjson.loads(published.read("json"))["$defs"]
    assert "anyOf" in defs["SessionStatus"]
    assert defs["ScopeKind"] == {
        "type": "string",
        "enum": ["all", "catalog", "session", "tree", "approvals"],
    }
    assert defs["SchemaParams"]["properties"]["format"]["enum"] == [*FORMATS]
