"""Keys: where they are found, and that they are shown nowhere."""

from pathlib import Path

import pytest

from callboard.models.keys import ApiKey, KeyRing
from callboard_rpc.errors import CallboardError

SECRET = "sk-test-0123456789abcdef"


class Ring:
    def __init__(self, *passwords: tuple[str, str], broken: bool = False) -> None:
        self.passwords = dict(passwords)
        self.broken = broken
        self.asked: list[tuple[str, str]] = []

    def get_password(self, service_name: str, username: str) -> str | None:
        self.asked.append((service_name, username))
        if self.broken:
            raise RuntimeError("locked")
        return self.passwords.get(username)


def ring_of(
    directory: Path, environ: dict[str, str] | None = None, ring: Ring | None = None
) -> KeyRing:
    return KeyRing(environ or {}, directory, lambda: ring)


def write(directory: Path, text: str, mode: int = 0o600) -> Path:
    path = directory / "keys.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_environment_goes_before_the_file_and_the_file_before_the_keyring(
    tmp_path: Path,
) -> None:
    ring = Ring(("a", "from-keyring"), ("b", "from-keyring"), ("c", "from-keyring"))
    write(tmp_path, 'a = "from-file"\nb = "from-file"\n')
    keys = ring_of(tmp_path, {"A_API_KEY": " from-env \n", "B_API_KEY": " "}, ring)
    for name in "abc":
        keys.ask_keyring(name)
    assert keys.value("a", "A_API_KEY") == "from-env"
    assert keys.value("b", "B_API_KEY") == "from-file"
    assert keys.value("c", "C_API_KEY") == "from-keyring"
    assert keys.value("d", "D_API_KEY") is None


def test_a_key_tells_where_it_was_found(tmp_path: Path) -> None:
    path = write(tmp_path, f'b = "{SECRET}"')
    keys = ring_of(tmp_path, {"A_KEY": SECRET})
    found = [keys.find("a", "A_KEY"), keys.find("b")]
    assert [key.source if key else None for key in found] == [
        "the environment variable A_KEY",
        str(path),
    ]


def test_a_key_is_in_no_repr(tmp_path: Path) -> None:
    write(tmp_path, f'a = "{SECRET}"')
    keys = ring_of(tmp_path, {"B_API_KEY": SECRET})
    assert SECRET not in repr(keys) + repr(keys.find("a")) + str(keys.find("b", "B_API_KEY"))
    assert SECRET not in repr(ApiKey(SECRET, "x"))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o610])
def test_a_file_that_others_can_read_is_refused_with_the_way_out(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path, f'a = "{SECRET}"', mode)
    keys = ring_of(tmp_path)
    with pytest.raises(CallboardError, match=f"chmod 600 {path}") as caught:
        keys.find("a")
    assert caught.value.kind == "authRequired"
    assert keys.secrets() == ()
    path.chmod(0o600)
    assert keys.value("a") == SECRET


def test_a_key_of_the_environment_needs_no_file_in_order(tmp_path: Path) -> None:
    write(tmp_path, "", 0o644)
    assert ring_of(tmp_path, {"A_API_KEY": SECRET}).value("a", "A_API_KEY") == SECRET


@pytest.mark.parametrize("text", [f'a = "{SECRET}', f"{SECRET}", f'[a]\nkey = "{SECRET}"', "a = 3"])
def test_a_file_that_cannot_be_understood_is_an_error_that_quotes_no_key(
    tmp_path: Path, text: str
) -> None:
    write(tmp_path, text)
    with pytest.raises(CallboardError) as caught:
        ring_of(tmp_path).find("a")
    assert "keys.toml" in caught.value.message
    assert SECRET not in caught.value.message
    assert caught.value.__cause__ is None


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    write(tmp_path, 'a = "one-key-of-a"')
    keys = ring_of(tmp_path)
    assert keys.value("a") == "one-key-of-a"
    write(tmp_path, 'a = "another-key-of-a"')
    assert keys.value("a") == "another-key-of-a"


def test_the_keyring_is_asked_once_and_only_when_told_to(tmp_path: Path) -> None:
    ring = Ring(("a", SECRET))
    keys = ring_of(tmp_path, ring=ring)
    assert keys.value("a") is None
    keys.ask_keyring("a")
    keys.ask_keyring("a")
    assert keys.value("a") == SECRET
    assert ring.asked == [("callboard", "a")]


def test_a_keyring_that_fails_is_no_key(tmp_path: Path) -> None:
    keys = ring_of(tmp_path, ring=Ring(broken=True))
    keys.ask_keyring("a")
    assert keys.value("a") is None


def test_secrets_are_all_that_is_known_the_longest_first(tmp_path: Path) -> None:
    write(tmp_path, 'a = "key-in-the-file"\nb = "short"')
    ring = Ring(("c", "key-of-the-keyring-x"))
    environ = {
        "OPENAI_API_KEY": "key-of-openai-abc",
        "GITHUB_TOKEN": "ghp-0123456789",
        "ODD_NAME": "key-under-an-odd-name-xyz",
        "PATH": "/usr/bin:/usr/local/bin",
        "KEYBOARD": "qwertz-de-latin1",
    }
    keys = ring_of(tmp_path, environ, ring)
    keys.ask_keyring("c")
    keys.find("d", "ODD_NAME")
    keys.remember("header-value-1")
    assert keys.secrets() == (
        "key-under-an-odd-name-xyz",
        "key-of-the-keyring-x",
        "key-of-openai-abc",
        "key-in-the-file",
        "ghp-0123456789",
        "header-value-1",
    )


def test_whoever_hides_secrets_hears_of_each_once_and_before_it_can_be_used(tmp_path: Path) -> None:
    told: list[str] = []
    ring = Ring(("c", "key-of-the-keyring-x"))
    keys = KeyRing(
        {"ODD_NAME": "key-under-an-odd-name"}, tmp_path, lambda: ring, on_secret=told.append
    )
    assert keys.secrets() == () and told == []
    write(tmp_path, 'a = "key-in-the-file"\nb = "short"')
    keys.find("d", "ODD_NAME")  # which needs no file
    assert told == ["key-under-an-odd-name", "key-in-the-file"]
    keys.ask_keyring("c")
    keys.remember("header-value-1")
    write(tmp_path, 'a = "key-in-the-file"\nb = "another-key-in-the-file"')
    for _ in range(2):
        keys.look()
        keys.find("a")
    assert told[2:] == ["key-of-the-keyring-x", "header-value-1", "another-key-in-the-file"]


def test_a_look_at_a_file_that_is_not_in_order_is_no_error(tmp_path: Path) -> None:
    told: list[str] = []
    keys = KeyRing({}, tmp_path, lambda: None, on_secret=told.append)
    path = write(tmp_path, f'a = "{SECRET}"', 0o644)
    keys.look()
    assert told == []
    path.chmod(0o600)
    keys.look()
    assert told == [SECRET]
