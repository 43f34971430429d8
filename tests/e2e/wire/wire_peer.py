"""The other end of a server's pipes. The server is `rpc_probe_server.py`: the wire's own parts with
handlers that misbehave when asked."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

PROBE = Path(__file__).with_name("rpc_probe_server.py")
PATIENCE = 60


class Peer:
    """The other end of the pipes. A thread reads, so that nothing here can block for ever."""

    def __init__(self, framing, **given):
        environment = {**os.environ, "PROBE": json.dumps(given), "PYTHONUNBUFFERED": "1"}
        self.framing = framing
        self.process = subprocess.Popen(
            [sys.executable, str(PROBE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        self.inbox = queue.Queue()
        self.aside = []
        self.stderr = b""
        self.lines = queue.Queue()
        self.reading = threading.Event()
        self.reading.set()
        threading.Thread(target=self._read, daemon=True).start()
        self.drain = threading.Thread(target=self._read_errors, daemon=True)
        self.drain.start()

    def _read(self):
        out = self.process.stdout
        while True:
            self.reading.wait()
            line = out.readline()
            if not line:
                break
            if self.framing == "lsp":
                assert line.startswith(b"Content-Length: "), line
                length = int(line.split(b":")[1])
                assert out.readline() == b"\r\n"
                line = out.read(length)
                if len(line) < length:  # the server was cut off in the middle of a frame
                    break
            elif not line.endswith(b"\n"):
                break
            self.inbox.put(json.loads(line))
        self.inbox.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.stderr += line
            self.lines.put(line)

    def says(self, text):
        """Waits for a line on stderr."""
        while text not in self.lines.get(timeout=PATIENCE):
            pass

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def encode(self, body):
        if self.framing == "lsp":
            return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        return body + b"\n"

    def body(self, body):
        self.raw(self.encode(body))

    def send(self, message):
        self.body(json.dumps(message).encode())

    def ask(self, id, method, params=None):
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        self.send(message if params is None else {**message, "params": params})

    def tell(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method}
        self.send(message if params is None else {**message, "params": params})

    def do(self, id, name, **more):
        self.ask(id, "server/ping", {"echo": {"do": name, **more}})

    def next(self):
        if self.aside:
            return self.aside.pop(0)
        return self.inbox.get(timeout=PATIENCE)

    def answer(self, id):
        """The next answer to `id`; what comes before it is kept for `next`."""
        kept = []
        while True:
            message = self.next()
            assert message is not None, f"the server is gone: {self.stderr.decode()}"
            if (isinstance(message, dict) and message.get("id") == id) and "method" not in message:
                self.aside = kept + self.aside
                return message
            kept.append(message)

    def call(self, id, name, **more):
        self.do(id, name, **more)
        message = self.answer(id)
        return message["result"].get("echo") if "result" in message else message["error"]

    def open(self, **params):
        self.ask("open", "initialize", {"processId": None, **params})
        return self.answer("open")["result"]

    def open_unheard(self):
        self.ask("open", "initialize", {"processId": None})

    def alive(self):
        self.ask("alive", "server/ping", {"echo": "here"})
        assert self.answer("alive")["result"]["echo"] == "here"

    def ends(self):
        """The exit code, once the process has ended by itself while stdin stays open."""
        return self.process.wait(timeout=PATIENCE)

    def rest(self):
        """Everything that still comes until the server closes its end."""
        out, self.aside = self.aside, []
        while (message := self.inbox.get(timeout=PATIENCE)) is not None:
            out.append(message)
        return out

    def close(self):
        self.reading.set()
        for stream in (self.process.stdin, None):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def reply(peer, id, **fields):
    peer.send({"jsonrpc": "2.0", "id": id, **fields})
