"""A provider made of paper: an HTTP/1.1 server on loopback that plays scripted responses byte for byte.

    async with HttpFake(Reply(chunks=(b"data: 1\\n\\n",))) as fake:
        ...  # ask fake.url + "/v1/chat/completions", then look at fake.requests

Replies are played in order; the last one is repeated unless `repeat_last=False`, when a further
request is answered with 599. Each chunk is written on its own and flushed (with TCP_NODELAY), and the
server waits until the peer had a chance to read it, so that boundaries arrive as they were written.

As a process: ``python tests/fakes/http_fake.py SCRIPT.json`` prints its base URL as its first line
and plays ``[{"status": 200, "headers": {...}, "chunks": ["text", ...], "end": "clean"}, ...]``.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import field, frozen

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}


@frozen(kw_only=True)
class Reply:
    """One scripted response.

    `end` says how it ends: ``clean``, ``close`` (the connection breaks in mid-body), ``hang`` (nothing
    more comes until the peer leaves), ``silent`` (not even the head is sent), ``slam`` (closed before the head).
    `pause_after` is the number of chunks after which the server waits for `HttpFake.resume`.
    """

    status: int = 200
    headers: Mapping[str, str] = field(factory=lambda: dict(EVENT_STREAM))
    chunks: tuple[bytes, ...] = ()
    end: Literal["clean", "close", "hang", "silent", "slam"] = "clean"
    pause_after: int | None = None


def json_reply(
    payload: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Reply:
    """A whole JSON response, as for errors and lists of models."""
    return Reply(
        status=status,
        headers={"content-type": "application/json", **(headers or {})},
        chunks=(json.dumps(payload).encode(),),
    )


@frozen(kw_only=True)
class Request:
    """What a client sent. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """Which connection it came over, counted from 1."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class HttpFake:
    """The server. `requests` is what came so far; `left` is set when a client closed a hanging reply."""

    def __init__(
        self,
        *replies: Reply,
        repeat_last: bool = True,
        answer: Callable[[Request], Reply] | None = None,
    ) -> None:
        self._replies = list(replies)
        self._repeat_last = repeat_last
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = 0
        self._arrival = asyncio.Condition()
        self.requests: list[Request] = []
        self.resume = asyncio.Event()
        self.paused = asyncio.Event()
        self.left = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> "HttpFake":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def wait_for_requests(self, count: int) -> None:
        """Returns once `count` requests have come."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: len(self.requests) >= count)

    def _next(self, request: Request) -> Reply:
        if self._answer is not None:
            return self._answer(request)
        if len(self._replies) > 1 or (self._replies and not self._repeat_last):
            return self._replies.pop(0)
        if self._replies:
            return self._replies[0]
        return json_reply({"error": {"message": "the fake's script is at its end"}}, status=599)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        number = self._connections
        try:
            while (request := await _read_request(reader, number)) is not None:
                async with self._arrival:
                    self.requests.append(request)
                    reply = self._next(request)
                    self._arrival.notify_all()
                if not await self._play(reply, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _play(
        self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection can serve another request."""
        if reply.end == "slam":
            return False
        if reply.end == "silent":
            await self._until_left(reader)
            return False
        head = [f"HTTP/1.1 {reply.status} Scripted", "transfer-encoding: chunked"]
        head += [f"{name}: {value}" for name, value in reply.headers.items()]
        writer.write("\r\n".join((*head, "", "")).encode("latin-1"))
        await writer.drain()
        for index, chunk in enumerate(reply.chunks):
            if index == reply.pause_after:
                self.paused.set()
                await self.resume.wait()
            if not chunk:
                continue
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
            await asyncio.sleep(0)
        if reply.pause_after is not None and reply.pause_after >= len(reply.chunks):
            self.paused.set()
            await self.resume.wait()
        match reply.end:
            case "hang":
                await self._until_left(reader)
                return False
            case "close":
                return False
            case _:
                writer.write(b"0\r\n\r\n")
                await writer.drain()
                return True

    async def _until_left(self, reader: asyncio.StreamReader) -> None:
        while await reader.read(4096):
            pass
        self.left.set()


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Request | None:
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while (line := await reader.readline()) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding") == "chunked":
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method=method, path=path, headers=headers, body=body, connection=connection)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


def split_every(data: bytes, size: int) -> tuple[bytes, ...]:
    """`data` in pieces of `size` bytes."""
    return tuple(data[start : start + size] for start in range(0, len(data), size))


def split_lines(data: bytes) -> tuple[bytes, ...]:
    """`data` cut after each line end, and between CR and LF as well."""
    pieces: list[bytes] = []
    for line in data.splitlines(keepends=True):
        if line.endswith(b"\r\n"):
            pieces += [line[:-1], b"\n"]
        else:
            pieces.append(line)
    return tuple(pieces)


def split_characters(data: bytes) -> tuple[bytes, ...]:
    """`data` cut inside each character that takes more than one byte; whole when there is none."""
    cuts = [at for at in range(1, len(data)) if data[at] & 0xC0 == 0x80]
    edges = [0, *cuts, len(data)]
    return tuple(data[a:b] for a, b in itertools.pairwise(edges))


def ways_to_split(data: bytes) -> dict[str, tuple[bytes, ...]]:
    """Every class of boundary that a network can make of a stream, by name."""
    return {
        "whole": (data,),
        "single bytes": split_every(data, 1),
        "sevens": split_every(data, 7),
        "lines": split_lines(data),
        "characters": split_characters(data),
        "crlf, split": split_lines(data.replace(b"\n", b"\r\n")),
        "cr only": split_every(data.replace(b"\n", b"\r"), 5),
    }


async def _main(script: Path) -> None:
    replies = [
        Reply(
            status=each.get("status", 200),
            headers=each.get("headers", EVENT_STREAM),
            chunks=tuple(chunk.encode() for chunk in each.get("chunks", ())),
            end=each.get("end", "clean"),
        )
        for each in json.loads(script.read_text())
    ]
    async with HttpFake(*replies) as fake:
        print(fake.url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
