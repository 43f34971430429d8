"""The floor: a bare JSON-RPC loop over stdio that calls the same model, runs the same tools and keeps
nothing. No checks, no log, no approvals, no limits; what Callboard takes beyond this is Callboard's.

It speaks as much of the protocol as the bench uses. ``floor.py PORT`` is its command line.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import orjson


class ModelClient:
    """Chat Completions over kept connections, with as little as can be between socket and JSON."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def stream(self, messages: list[dict[str, Any]], piece: Any) -> dict[str, Any] | None:
        """Calls `piece` with each text, and returns the tool call that was asked for, if one was."""
        if self._free:
            reader, writer = self._free.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        body = orjson.dumps({"model": "bench", "messages": messages, "stream": True})
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        )
        call: dict[str, Any] | None = None
        rest = tail = b""
        while not tail.endswith(b"\r\n0\r\n\r\n"):
            data = await reader.read(65536)
            tail = (tail + data)[-7:]
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if not line.startswith(b"data: {"):
                    continue
                delta = orjson.loads(line[6:])["choices"][0]["delta"]
                if "content" in delta:
                    piece(delta["content"])
                for asked in delta.get("tool_calls", ()):
                    call = asked
        self._free.append((reader, writer))
        return call


class Loop:
    """One client on stdin and stdout."""

    def __init__(self, port: int) -> None:
        self._model = ModelClient(port)
        self._sessions: dict[str, Path] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, message: dict[str, Any]) -> None:
        sys.stdout.buffer.write(orjson.dumps(message) + b"\n")
        sys.stdout.buffer.flush()

    def event(self, session_id: str, kind: str, data: dict[str, Any]) -> None:
        event = {"sessionId": session_id, "type": kind, "data": data}
        self.send(
            {
                "jsonrpc": "2.0",
                "method": "event/batch",
                "params": {"events": [event], "subscriptionId": "sub", "cursor": "0"},
            }
        )

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=1 << 26)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        first = await reader.readexactly(1)
        if first == b"C":
            await self._greet_lsp(reader)
            return
        line = first + await reader.readline()
        while line:
            self._receive(orjson.loads(line))
            line = await reader.readline()

    async def _greet_lsp(self, reader: asyncio.StreamReader) -> None:
        header = await reader.readuntil(b"\r\n\r\n")
        message = orjson.loads(await reader.readexactly(int(header.split(b":")[1])))
        body = orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()
        await reader.read()

    def _receive(self, message: dict[str, Any]) -> None:
        result: dict[str, Any] = {}
        params = message.get("params", {})
        match message["method"]:
            case "session/create":
                session_id = f"ses_{len(self._sessions)}"
                self._sessions[session_id] = Path(params["cwd"])
                result = {"session": {"sessionId": session_id}}
            case "session/prompt":
                session_id, text = params["sessionId"], params["content"][0]["text"]
                task = asyncio.get_running_loop().create_task(self._turn(session_id, text))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case _:
                pass
        if "id" in message:
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _turn(self, session_id: str, prompt: str) -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        said: list[str] = []

        def piece(text: str) -> None:
            said.append(text)
            note = {"sessionId": session_id, "text": text, "count": 1}
            self.send({"jsonrpc": "2.0", "method": "event/delta", "params": note})

        while (call := await self._model.stream(messages, piece)) is not None:
            self.event(session_id, "tool_call", {"callId": call["id"]})
            output = await self._tool(session_id, call["function"])
            self.event(session_id, "tool_result", {"callId": call["id"], "text": output})
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})
        self.event(session_id, "message", {"content": [{"type": "text", "text": "".join(said)}]})
        self.event(session_id, "turn_finished", {"outcome": "completed"})

    async def _tool(self, session_id: str, function: dict[str, Any]) -> str:
        arguments = orjson.loads(function["arguments"])
        folder = self._sessions[session_id]
        if function["name"] == "read_file":
            return (folder / arguments["path"]).read_text()
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", arguments["command"], cwd=folder,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
        return output.decode()


if __name__ == "__main__":
    asyncio.run(Loop(int(sys.argv[1])).serve())
