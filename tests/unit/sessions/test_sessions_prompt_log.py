"""The note of a turn's system prompt (specs/execution.md 1): in the server's log, and nowhere else."""

import logging
from pathlib import Path

import pytest

from harness.inside import host_in, idle, log_of, new_session, say

pytestmark = pytest.mark.anyio

SECRET = "sk-proj-abcdefghijklmnop0123456789"


@pytest.mark.parametrize("level", [logging.WARNING, logging.INFO, logging.DEBUG])
async def test_the_prompt_is_noted_by_length_and_parts_and_its_text_only_for_debugging(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    level: int,
) -> None:
    (tmp_path / "AGENTS.md").write_text(f"Use tabs. The key is {SECRET}.", "utf-8")
    scene = tmp_path / "scene.yaml"
    scene.write_text("rules: []\ndefault:\n  - say: hello\n", "utf-8")
    with caplog.at_level(level, "callboard.sessions.prompt_log"):
        async with host_in(tmp_path, model=f"scripted/{scene}") as host:
            session_id = await new_session(host, tmp_path)
            await say(host, session_id, "go")
            await idle(host, session_id)
            types = [record.type for record in await log_of(host, session_id)]
    assert types == [
        "session_created",
        "message",
        "turn_started",
        "ack",
        "message",
        "turn_finished",
    ]
    noted = [r for r in caplog.records if r.name == "callboard.sessions.prompt_log"]
    assert [r.levelno for r in noted] == [
        each for each in (logging.INFO, logging.DEBUG) if each >= level
    ]
    if noted:
        assert "AGENTS.md: yes" in noted[0].getMessage()
        assert "instructions: no" in noted[0].getMessage()
        assert "Use tabs" not in noted[0].getMessage()
    if level == logging.DEBUG:
        assert "Use tabs" in noted[1].getMessage()
        assert SECRET not in noted[1].getMessage()
    assert capsys.readouterr().out == ""
