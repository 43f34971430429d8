"""Secrets in the environment, in streams and in commands: nothing of them on the wire or in the store."""

import json
from pathlib import Path

from harness.process import ServerProcess, scenario

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
        tmp_path, model=scenario(tmp_path, SCENARIO), environ=ENVIRON, callboard=allow
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
