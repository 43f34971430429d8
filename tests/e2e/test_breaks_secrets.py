"""Secrets in the environment, in streams and in commands: nothing of them on the wire or in the store."""

import asyncio
import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from callboard.log.redact import RedactingFilter, Redactor
from callboard.log.redact_stream import RedactedStream
from harness.inside import host_in, idle, log_of, new_session, say
from harness.process import ANEW, ServerProcess, scenario

KEY = "sk-proj-abcdefghij0123456789abcdef"
ENVIRON = {
    "OPENAI_API_KEY": KEY,
    "DATABASE_URL": "postgres://me:p4ssw0rd-of-db@host/db",
    "HTTPS_PROXY": "http://only-a-token-77@127.0.0.1:1",
    "MAKEFLAGS": "TOKEN=of-make-88",
    "SERVICE_TOKEN": "of-some-service-99",
}
SCENARIO = f"""
rules:
  - when: {{last_user: say it}}
    answer: [{{think: "so {KEY} it is", chunk: 3, delay_ms: 3}}, {{say: "it is {KEY}, yes", chunk: 3, delay_ms: 3}}]
  - when: {{last_user: run it, step: 0}}
    answer:
      - call: {{tool: run_command, arguments: {{command: "env; cat /proc/$PPID/environ; printf 'sk-proj-'; sleep 0.12; echo abcdefghij0123456789abcdef"}}}}
default: [{{say: done}}]
"""


def test_no_secret_of_the_environment_reaches_the_wire_or_the_store(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    allow = {"config": {"approvals": {"policy": {"run_command": "allow"}}}}
    with ServerProcess(
        tmp_path, model=scenario(tmp_path, SCENARIO), environ=ENVIRON, callboard=allow, program=ANEW
    ) as server:
        server.call("event/subscribe", scope={"kind": "all"}, deltas=True, **{"from": "now"})
        session = server.create(tmp_path / "work")
        for text in ("say it", "run it"):
            server.prompt(session, text)
            server.wait(session)
        events = server.events(session)
        texts: dict[tuple[str, str], str] = {}
        for message in server.seen:
            if message.get("method") == "event/delta":
                delta = message["params"]
                key = (delta["messageId"], delta["kind"])
                texts[key] = texts.get(key, "") + delta["text"]
        shown = json.dumps(server.seen) + "\n".join(texts.values())
        assert "it is [redacted:secret], yes" in texts.values(), texts
        assert "so [redacted:secret] it is" in texts.values(), texts
        server.close()
        shown += server.stderr()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("store.db*") if path.is_file())
    everything = shown + stored.decode("latin1")
    for secret in (KEY, "p4ssw0rd-of-db", "of-some-service-99"):
        assert secret not in everything
    # the command was given none of it
    result = next(e["data"]["text"] for e in events if e["type"] == "tool_result")
    own = result.split("\0")[0].split("_=/")[0]
    assert "PATH=" in own
    assert "only-a-token-77" not in own and "of-make-88" not in own


HEADER = "header-credential-4711"
AT_START = "key-known-at-the-start-99"
WRITTEN = "key-written-after-the-start-77"
RINGING = "key-of-the-keyring-asked-later-55"
ODD = "key-under-an-odd-name-33"


def keys_in(folder: Path, **keys: str) -> None:
    path = folder / "config" / "keys.toml"
    path.parent.mkdir(exist_ok=True)
    part = path.with_name("part")
    part.touch(0o600)
    part.write_text("".join(f'{name} = "{key}"\n' for name, key in keys.items()))
    part.replace(path)


@pytest.mark.anyio
async def test_a_secret_that_becomes_known_after_the_start_is_hidden_like_those_from_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Session-messaging 12: also for what has the redactor already, the log's filter and a stream."""

    def ask(service: str, name: str) -> str | None:
        return RINGING if (service, name) == ("callboard", "ringing") else None

    ring = SimpleNamespace(get_password=ask)
    monkeypatch.setitem(sys.modules, "keyring", ring)
    keys_in(tmp_path, acme=AT_START)
    config = tmp_path / "config" / "config.toml"
    config.touch(0o600)
    config.write_text(
        '[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\n'
        f'[providers.acme.headers]\nx-acme-token = "{HEADER}"\n'
        '[providers.ringing]\nbase_url = "http://127.0.0.1:9/v1"\n'
        '[providers.odd]\nbase_url = "http://127.0.0.1:9/v1"\nkey_env = "ODD_NAME"\n'
    )
    everything = ", ".join((HEADER, AT_START, WRITTEN, RINGING, ODD))
    async with host_in(tmp_path, environ={"ODD_NAME": ODD}) as host:
        lines = RedactingFilter(host.redactor)
        stream = RedactedStream(host.redactor)
        session = await new_session(host, tmp_path)
        keys_in(tmp_path, acme=AT_START, other=WRITTEN)
        await host.catalog.resolve("ringing/any")
        await say(host, session, everything)
        await idle(host, session)
        record = logging.LogRecord("x", logging.INFO, "x", 1, "%s", (everything,), None)
        assert lines.filter(record)
        streamed = "".join(map(stream.feed, everything)) + stream.end()
        stored = [r.data for r in await log_of(host, session) if r.type == "message"]
    hidden = ", ".join(["[redacted:secret]"] * 5)
    assert hidden in stored[0]
    assert (record.getMessage(), streamed) == (hidden, hidden)


@pytest.mark.anyio
async def test_a_key_that_is_written_while_nothing_runs_is_known_soon_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = asyncio.Event()
    add = Redactor.add

    def added(self: Redactor, secret: str) -> None:
        add(self, secret)
        if secret == WRITTEN:
            known.set()

    monkeypatch.setattr(Redactor, "add", added)
    async with host_in(tmp_path) as host:
        keys_in(tmp_path, other=WRITTEN)
        host.log.feed.knock()  # the host looks about, as it does by itself every other second
        await known.wait()
        assert host.redactor.text(WRITTEN) == "[redacted:secret]"
