"""Session-messaging 12 where a turn cuts what it writes down: the secrets go first, for nobody would know half
of one."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from callboard.config.hooks import HookCommand
from callboard.hooks.service import HookSpace, Lifecycle
from callboard.hooks.state import MAX_REASON
from callboard.host import Host
from callboard.log.redact import Redactor
from callboard.models.base import Model
from callboard.rpc.attachments import attached
from callboard.turns.ending import failure_of
from callboard_rpc.common import ContextItem
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say
from harness.puppets import Puppet, calls, of, speaks

pytestmark = pytest.mark.anyio

SECRET = "q7<zk>&vw-known-to-the-process-0123456789"
PIECE = SECRET[:8]
GONE = "[redacted:secret]"


def astride(limit: int, beyond: int = 20) -> str:
    """A text in which a cut at `limit` goes through the secret."""
    return "x" * (limit - beyond - 1) + " " + SECRET + " and so on" * 20


async def ran(host: Host, folder: Path, *requested: tuple[str, Any]) -> str:
    """A session whose model makes these calls; idle again."""
    host.redactor.add(SECRET)
    puppet = Puppet(calls(*requested), speaks("done"))

    async def resolve(model_id: str | None = None, *, text_tool_calls: bool = False) -> Model:
        return puppet

    host.catalog.resolve = resolve  # type: ignore[method-assign]
    session_id = await new_session(host, folder)
    await say(host, session_id, "go")
    return session_id


def nothing_stored(folder: Path) -> None:
    stored = b"".join(path.read_bytes() for path in folder.glob("store.db*") if path.is_file())
    assert PIECE.encode() not in stored and GONE.encode() in stored


async def until(host: Host, session_id: str, *kinds: str) -> Any:
    """The first record of one of these kinds, once it is there."""
    async with asyncio.timeout(30):
        while True:
            position = host.log.head
            for record in await log_of(host, session_id):
                if record.type in kinds:
                    return record
            await host.log.moved(position)


CUT: list[tuple[str, tuple[str, Any], str]] = [
    ("a command's title", ("run_command", {"command": f"echo {astride(110)}"}), GONE[:4]),
    ("an agent's title", ("spawn_agent", {"name": "one", "message": astride(95)}), "Start the agent"),
    ("an agent's brief", ("spawn_agent", {"name": "one", "message": astride(400)}), "Start the agent"),
    ("a path that is none", ("read_file", {"path": astride(112)}), ""),
    ("a pattern", ("search_files", {"pattern": astride(105)}), "Search for"),
    ("a tool that there is not", (astride(128), {}), ""),
]  # fmt: skip


@pytest.mark.parametrize(("requested", "title"), [c[1:] for c in CUT], ids=[c[0] for c in CUT])
async def test_messaging_12_what_is_shown_of_a_call_is_cut_after_its_secrets_are_gone(
    tmp_path: Path, requested: tuple[str, Any], title: str
) -> None:
    config = tmp_path / "config" / "config.toml"
    config.parent.mkdir()
    config.touch(0o600)
    config.write_text('[approvals.policy]\nspawn_agent = "ask"\n')
    async with host_in(tmp_path) as host:
        session_id = await ran(host, tmp_path, requested)
        asked = await until(host, session_id, "approval_request", "tool_result")
        if asked.type == "approval_request":
            approval = asked.value.approval
            assert PIECE not in approval.title and title in approval.title
            await answered(host, approval)
        await idle(host, session_id)
        (call,) = of(await log_of(host, session_id), "tool_call")
        assert title in (call.title or "")
    nothing_stored(tmp_path)


async def answered(host: Host, approval: Any, feedback: str | None = None) -> None:
    option = next(o.option_id for o in approval.options if o.kind == "reject_once")
    await host.approvals.answer(
        approval.approval_id, option, by=CLIENT, via="method", feedback=feedback
    )


async def test_messaging_12_feedback_is_cut_after_its_secrets_are_gone(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await ran(host, tmp_path, ("run_command", {"command": "true"}))
        asked = await until(host, session_id, "approval_request")
        await answered(host, asked.value.approval, astride(16_000))
        await idle(host, session_id)
    nothing_stored(tmp_path)


async def test_messaging_12_a_file_given_as_context_is_cut_after_its_secrets_are_gone(
    tmp_path: Path,
) -> None:
    (tmp_path / "long.txt").write_text(astride(32 * 1024) + "y" * 100_000)
    async with host_in(tmp_path) as host:
        host.redactor.add(SECRET)
        session_id = await new_session(host, tmp_path)
        call: Any = SimpleNamespace(
            connection=SimpleNamespace(lsp=None), capabilities=SimpleNamespace(read_file=False)
        )
        (resource,) = await attached(host, session_id, [ContextItem(uri="long.txt")], call)
    assert resource.text is not None
    assert PIECE not in resource.text and GONE in resource.text and "characters …]" in resource.text


@pytest.mark.parametrize("how", ["stderr", "stdout"])
async def test_messaging_12_what_a_hook_says_and_is_told_is_cut_after_its_secrets_are_gone(
    tmp_path: Path, how: str
) -> None:
    (tmp_path / "says").write_text(
        astride(MAX_REASON)
        if how == "stderr"
        else f'{{"decision": "block", "reason": "{astride(MAX_REASON)}"}}'
    )
    end = "cat says >&2; exit 2" if how == "stderr" else "cat says"
    space = HookSpace(
        folder=tmp_path,
        environment={"PATH": "/usr/bin:/bin"},
        redactor=Redactor([SECRET]),
        new_id=lambda kind: f"{kind}_1",
        spawn=lambda run, name: None,
    )
    hooks = Lifecycle(
        space=space,
        commands={"PostToolUse": (HookCommand(command=f"cat > told; {end}"),)},
        about={"sessionId": "s", "cwd": str(tmp_path)},
    )
    decision = await hooks.ask("PostToolUse", tool="read_file", output=astride(64 * 1024))
    assert decision.block is not None
    assert PIECE not in decision.block and GONE in decision.block
    told = (tmp_path / "told").read_text()
    assert PIECE not in told and GONE in told


def test_messaging_12_no_piece_of_a_fault_that_says_too_much_is_kept() -> None:
    said = failure_of(ValueError(astride(1_000)), "trn_1").message
    assert PIECE not in said and said.startswith("ValueError: ") and "server's log" in said
    assert failure_of(ValueError("no"), "trn_1").message == "ValueError: no"
