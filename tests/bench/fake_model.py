"""A model server on loopback that is as quick as Python allows, so that it is not what is measured.

Chat Completions, streamed. What it does is in the newest user message:

    say            one word
    chunks N       N pieces of text, each a write of its own, as fast as the peer takes them
    call NAME N    N requests for the tool NAME, one an answer, then one word
    hang           one piece of text, and no end

As a process it prints its port as its first line.
"""

import asyncio
import signal
import sys
from typing import Any

import orjson

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_DONE = b"data: [DONE]\n\n"
_USAGE = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
ARGUMENTS = {
    "read_file": lambda n: {"path": f"file{n}.txt"},
    "run_command": lambda n: {"command": f"true {n}"},
}
"""The arguments of the nth call of each tool. Each differs, as a loop would be noticed."""


def _event(delta: dict[str, Any], finish: str | None = None, usage: Any = None) -> bytes:
    chunk: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "bench",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    if usage is not None:
        chunk["usage"] = usage
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _word() -> list[bytes]:
    return [_event({"role": "assistant", "content": "Yes."}) + _event({}, "stop", _USAGE) + _DONE]


def _call(name: str, number: int) -> list[bytes]:
    arguments = orjson.dumps(ARGUMENTS[name](number)).decode()
    function = {"name": name, "arguments": arguments}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    return [_event({"tool_calls": [call]}) + _event({}, "tool_calls", _USAGE) + _DONE]


_PIECE = _framed(_event({"content": "word "}))
_NO_END = b""


def answer(messages: list[dict[str, Any]]) -> list[bytes]:
    """The writes of one answer, each framed as a chunk of the body."""
    results = 0
    order = ["say"]
    for message in reversed(messages):
        if message["role"] == "tool":
            results += 1
        elif message["role"] == "user":
            order = _text(message).split()
            break
    match order:
        case ["chunks", count]:
            return [_PIECE] * int(count) + [_framed(_event({}, "stop", _USAGE) + _DONE)]
        case ["call", name, count] if results < int(count):
            return [_framed(piece) for piece in _call(name, results)]
        case ["hang"]:
            return [_PIECE, _NO_END]
        case _:
            return [_framed(piece) for piece in _word()]


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            length = 0
            for line in self._data[:end].split(b"\r\n"):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            body = self._data[end + 4 : end + 4 + length]
            if len(body) < length:
                return
            self._data = self._data[end + 4 + length :]
            self._answer(orjson.loads(body)["messages"])

    def _answer(self, messages: list[dict[str, Any]]) -> None:
        first, *rest = answer(messages)
        self._transport.write(_HEAD + first)
        for piece in rest:
            if piece is _NO_END:
                return
            self._transport.write(piece)
        self._transport.write(b"0\r\n\r\n")


async def _main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
