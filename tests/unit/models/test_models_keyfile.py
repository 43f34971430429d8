"""The file of stored keys: what a change leaves as it was, and whom it is kept from."""

import os
import stat
import threading
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.models.keyfile import MOST_CHARS, KeyFile, fault_in_key, withheld_files
from callboard_rpc.errors import CallboardError

SECRET = "sk-test-0123456789abcdef"


def test_a_key_is_kept_for_its_owner_alone_in_a_folder_that_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "callboard"
    before = os.umask(0)
    try:
        KeyFile(folder).store("openai", SECRET)
    finally:
        os.umask(before)
    assert KeyFile(folder).entries() == {"openai": SECRET}
    assert stat.S_IMODE((folder / "keys.toml").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [each.name for each in folder.iterdir()] == ["keys.toml"]


def test_what_a_person_wrote_besides_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.touch(0o600)
    path.write_text('# mine\na = "key-of-a-one"  # old\n\n"b c" = \'key-of-b-one\'\n')
    keys = KeyFile(tmp_path)
    keys.store("a", "key-of-a-two")
    assert path.read_text() == '# mine\n\n"b c" = \'key-of-b-one\'\na = "key-of-a-two"\n'
    assert keys.forget("b c")
    assert not keys.forget("b c")
    assert path.read_text() == '# mine\n\na = "key-of-a-two"\n'


def test_a_file_that_cannot_be_changed_line_by_line_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.touch(0o600)
    path.write_text('a = """\nkey-of-a-one"""\nb = "key-of-b-one"\n')
    keys = KeyFile(tmp_path)
    keys.store("a", "key-of-a-two")
    assert keys.entries() == {"a": "key-of-a-two", "b": "key-of-b-one"}


_NAMES = st.text(min_size=1, max_size=20).filter(
    lambda s: not any("\ud800" <= c <= "\udfff" for c in s)
)
_KEYS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=60)


@given(st.lists(st.tuples(_NAMES, _KEYS | st.none()), max_size=8))
def test_whatever_is_stored_and_removed_the_file_is_toml_and_says_that(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str | None]]
) -> None:
    keys = KeyFile(tmp_path_factory.mktemp("keys"))
    kept: dict[str, str] = {}
    for name, key in steps:
        if key is None:
            assert keys.forget(name) == (kept.pop(name, None) is not None)
        else:
            keys.store(name, key)
            kept[name] = key
    assert keys.entries() == kept
    if keys.path.exists():
        assert tomllib.loads(keys.path.read_text("utf-8")) == kept


@pytest.mark.parametrize(
    "key",
    ["", "x7-y9", "two words here", "line\nbreaks-in-it", "\x1b[31mcoloured", "schlüssel-lang", "x" * (MOST_CHARS + 1)],
    ids=["empty", "short", "blank", "lines", "control", "umlaut", "long"],
)  # fmt: skip
def test_what_cannot_be_a_key_is_refused_and_not_repeated(tmp_path: Path, key: str) -> None:
    assert fault_in_key(SECRET) is None
    with pytest.raises(CallboardError) as caught:
        KeyFile(tmp_path).store("openai", key)
    assert not key or key not in caught.value.message
    assert not (tmp_path / "keys.toml").exists()


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_nothing_is_stored_where_others_can_write(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(CallboardError, match=f"chmod go-w {folder}"):
        KeyFile(folder).store("openai", SECRET)
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)
    KeyFile(folder).store("openai", SECRET)


def test_a_link_is_not_written_through_and_not_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch(0o600)
    folder = tmp_path / "config"
    folder.mkdir(0o700)
    (folder / "keys.toml").symlink_to(victim)
    with pytest.raises(CallboardError, match="is a link"):
        KeyFile(folder).store("openai", SECRET)
    assert victim.read_text() == ""
    (folder / "keys.toml").unlink()
    (folder / "keys.toml.new").symlink_to(victim)
    KeyFile(folder).store("openai", SECRET)
    assert victim.read_text() == ""
    assert not (folder / "keys.toml").is_symlink()


def test_one_that_others_can_read_is_not_added_to(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('a = "key-of-a-one"\n')
    path.chmod(0o644)
    with pytest.raises(CallboardError, match=f"chmod 600 {path}"):
        KeyFile(tmp_path).store("b", SECRET)
    assert path.read_text() == 'a = "key-of-a-one"\n'


def test_of_two_that_store_at_once_none_is_lost(tmp_path: Path) -> None:
    names = [f"provider-{number}" for number in range(40)]
    threads = [
        threading.Thread(target=KeyFile(tmp_path).store, args=(name, f"key-of-{name}"))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert KeyFile(tmp_path).entries() == {name: f"key-of-{name}" for name in names}


def test_a_part_that_a_killed_process_left_is_withheld_too_and_goes_with_the_next(
    tmp_path: Path,
) -> None:
    kept, part = withheld_files(tmp_path)
    part.touch(0o600)
    part.write_text(SECRET)
    KeyFile(tmp_path).store("openai", SECRET)
    assert list(tmp_path.iterdir()) == [kept]
