"""A Chat Completions API in a thread beside the test, for tests that drive a real server and wait for it.

    with ChatAside(answer) as model:
        model.configure(folder / "home" / "config", context_window=4000)
        with ServerProcess(folder, model=model.model_id) as server: ...
        model.asked  # the messages of every request, as they came over the wire

`answer` gets the messages of a request and returns the delta of the one answer, as the API has it:
``{"content": ...}`` or ``{"tool_calls": [...]}`` (see `calls`). A request that breaks a documented rule
is refused (`fakes.openai_chat`), and fails the turn.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fakes.aside import Aside
from fakes.http_fake import Reply, Request, json_reply
from fakes.openai_chat import Refused, error_reply, judge

Messages = list[dict[str, Any]]
Delta = dict[str, Any]


def calls(name: str, **arguments: Any) -> Delta:
    """The delta that asks for one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}


def text_of(message: dict[str, Any]) -> str:
    """What a message says, in whichever of the API's two ways it is written."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content)


class ChatAside(Aside):
    """The API. `asked` grows with each request for an answer."""

    model_id = "aside/one"

    def __init__(self, answer: Callable[[Messages], Delta]) -> None:
        super().__init__()
        self._answer = answer
        self.asked: list[Messages] = []

    def configure(self, folder: Path, *, context_window: int = 128_000) -> None:
        """Writes the user's configuration that names this API as the provider ``aside``."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(
            f'[providers.aside]\napi = "openai_chat"\nbase_url = "{self.url}/v1"\n'
            f'models = [{{name = "one", context_window = {context_window}}}]\n',
            "utf-8",
        )

    def reply(self, request: Request) -> Reply:
        if request.method == "GET" and request.path.endswith("/models"):
            return json_reply({"object": "list", "data": [{"id": "one", "object": "model"}]})
        try:
            judge(request)
        except Refused as refusal:
            return error_reply(400, str(refusal))
        messages = request.json["messages"]
        self.asked.append(messages)
        delta = self._answer(messages)
        finish = "tool_calls" if "tool_calls" in delta else "stop"
        parts = [_chunk({"role": "assistant", **delta}, None), _chunk({}, finish), b"[DONE]"]
        return Reply(chunks=tuple(b"data: " + part + b"\n\n" for part in parts))


def _chunk(delta: Delta, finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "one"}
    return json.dumps({**chunk, "choices": [choice]}).encode()
