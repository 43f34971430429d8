"""The agents of other makers that the tests drive: how each is started with a fake model, and how its tools are
called."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from acp_tools import AGENTS, node
from attrs import frozen

_NODE = str(node())


@frozen(kw_only=True)
class KnownAgent:
    name: str
    command: Callable[[str], list[str]]
    """By the URL of the fake models."""
    environ: Callable[[str, Path], Mapping[str, str]]
    """What its profile adds to the environment, by that URL and its home."""
    write: Callable[[Path], str]
    """The prompt that has it create a file, with the permission of the person."""
    write_kind: str = "edit"
    """What kind of a call that is."""
    plan: str | None = None
    """The prompt that has it plan to look, and then to leap."""
    tells_size: bool = True
    """Whether it tells how much of its model's context is used."""
    goes_on: bool = True
    """Whether it takes a session up again in a new process."""
    settings: Callable[[Path], None] = lambda _: None
    """Writes what its own set-up would have written to its home."""

    def write_profile(self, config: Path, url: str, home: Path, more: Mapping[str, str]) -> None:
        """`more` goes to its environment, too."""
        self.settings(home)
        environ = {**self.environ(url, home), **more}
        write_profile(config, self.name, self.command(url), environ)


def write_profile(
    config: Path, name: str, command: list[str], environ: Mapping[str, str] | None = None
) -> None:
    """Writes a profile of the person's that is an agent of another maker."""
    folder = config / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    front = {"description": f"The agent {name}.", "kind": "acp", "command": command}
    if environ:
        front["env"] = dict(environ)
    text = "\n".join(f"{key}: {json.dumps(value)}" for key, value in front.items())
    (folder / f"{name}.md").write_text(f"---\n{text}\n---\n", "utf-8")


def tool(name: str, **arguments: Any) -> str:
    """The prompt that has the fake model call a tool."""
    return f"[[tool {name} {json.dumps(arguments)}]]"


# --- Codex, as Zed packs it: one program, the Responses API, deaf to the end of its input ---


def _codex(url: str) -> list[str]:
    program = next(AGENTS.glob("@zed-industries/codex-acp-*/bin/codex-acp*"))
    provider = (
        f'{{name="Fake",base_url="{url}/v1",wire_api="responses",env_key="FAKE_KEY",'
        "request_max_retries=0,stream_max_retries=0}"
    )
    settings = (
        'model="fake"',
        'model_provider="fake"',
        f"model_providers.fake={provider}",
        'approval_policy="on-request"',
        'sandbox_mode="read-only"',
    )
    return [str(program), *(word for each in settings for word in ("-c", each))]


CODEX = KnownAgent(
    name="codex",
    command=_codex,
    environ=lambda _, home: {"FAKE_KEY": "fake", "CODEX_HOME": str(_made(home / "codex"))},
    write=lambda path: tool(
        "shell_command",
        command=f"printf hello > {path}",
        sandbox_permissions="require_escalated",
        justification="a test",
    ),
    write_kind="execute",
    plan=tool(
        "update_plan",
        plan=[{"step": "Look", "status": "in_progress"}, {"step": "Leap", "status": "pending"}],
    ),
)

# --- Kimi Code: Chat Completions; has its client run commands and write files ---

KIMI = KnownAgent(
    name="kimi",
    command=lambda _: [_NODE, str(AGENTS / "@moonshot-ai/kimi-code/dist/main.mjs"), "acp"],
    environ=lambda url, home: {
        "KIMI_CODE_HOME": str(home / "kimi"),
        "KIMI_MODEL_NAME": "fake",
        "KIMI_MODEL_PROVIDER_TYPE": "openai",
        "KIMI_MODEL_BASE_URL": f"{url}/v1",
        "KIMI_MODEL_API_KEY": "fake",
        "KIMI_MODEL_MAX_CONTEXT_SIZE": "100000",
        "KIMI_CODE_NO_AUTO_UPDATE": "1",
    },
    write=lambda path: tool("Write", path=str(path), content="hello"),
)

# --- Gemini CLI: Gemini's API ---


def _chosen_key(home: Path) -> None:
    folder = _made(home / ".gemini")
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (folder / "settings.json").write_text(json.dumps(settings), "utf-8")


GEMINI = KnownAgent(
    name="gemini",
    command=lambda _: [
        _NODE,
        str(AGENTS / "@google/gemini-cli/bundle/gemini.js"),
        "--acp",
        "--model",
        "gemini-2.5-flash",
        "--skip-trust",
    ],
    environ=lambda url, home: {
        "HOME": str(home),
        "GEMINI_API_KEY": "fake",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "NO_BROWSER": "1",
    },
    write=lambda path: tool("write_file", file_path=str(path), content="hello"),
    tells_size=False,
    goes_on=False,
    settings=_chosen_key,
)

KNOWN = (CODEX, KIMI, GEMINI)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
