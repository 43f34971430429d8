"""An agent of the Agent Client Protocol that says what a real one has said, frame by frame.

    python acp_replay.py RECORDING.json

The recording (tests/fixtures/acp) has what was answered to ``initialize`` and ``session/new``, and for each of its
prompts the frames that followed, the client's among them: an answer of the client's is waited for where it came, and
has to be the same in what matters. The last word of a prompt says which it is.
"""

import json
import os
import re
import sys
import threading
from pathlib import Path
from queue import Queue
from typing import Any

RECORDING = Path(sys.argv[1]).read_text("utf-8")
SESSION = "the-session"


class Replay:
    def __init__(self) -> None:
        self.frames: dict[str, Any] = {}
        self.inbox: Queue[dict[str, Any]] = Queue()
        self.answers: dict[int, Queue[dict[str, Any]]] = {}
        self.cancelled = threading.Event()
        self.ids: dict[Any, int] = {}
        self.terminals: dict[str, str] = {}

    def put(self, frame: dict[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **frame})
        for recorded, real in self.terminals.items():
            text = text.replace(f'"{recorded}"', f'"{real}"')
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def read(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.answers[message["id"]].put(message)
            elif message["method"] == "session/cancel":
                self.cancelled.set()
            elif "id" in message:
                self.inbox.put(message)
        os._exit(0)

    def serve(self) -> None:
        self.place("/nowhere")
        while True:
            message = self.inbox.get()
            match message["method"]:
                case "initialize":
                    self.put({"id": message["id"], "result": self.frames["initialize"]})
                case "session/new":
                    self.place(message["params"]["cwd"])
                    for frame in self.frames["new"]:
                        self.put({"id": message["id"], **frame} if "result" in frame else frame)
                case "session/prompt":
                    self.play(message)
                case "session/set_config_option":
                    self.put({"id": message["id"], "result": {"configOptions": []}})
                case "session/set_mode":
                    self.put({"id": message["id"], "result": {}})
                case method:
                    error = {"code": -32601, "message": f"nothing of {method} was recorded"}
                    self.put({"id": message["id"], "error": error})

    def place(self, cwd: str) -> None:
        quoted = json.dumps(cwd)[1:-1]
        text = RECORDING.replace("{cwd}", quoted).replace("{session}", SESSION)
        self.frames = json.loads(re.sub(r"\{(home|packages|models)\}", "/elsewhere", text))

    def play(self, prompt: dict[str, Any]) -> None:
        self.cancelled.clear()
        said = "\n".join(block.get("text", "") for block in prompt["params"]["prompt"])
        for who, frame in self.frames["prompts"][said.split()[-1]]:
            if who == "client":
                self.wait_for(frame)
            elif "method" not in frame:
                self.put({"id": prompt["id"], **frame})
            elif "id" in frame:
                self.ask(frame)
            else:
                if frame["method"] == "$/cancel_request":
                    frame["params"]["requestId"] = self.ids[frame["params"]["requestId"]]
                self.put(frame)

    def ask(self, frame: dict[str, Any]) -> None:
        number = self.ids[frame["id"]] = 100 + len(self.answers)
        self.answers[number] = Queue()
        self.put({**frame, "id": number})

    def wait_for(self, frame: dict[str, Any]) -> None:
        if "method" in frame:
            self.cancelled.wait()
            return
        answer = self.answers[self.ids[frame["id"]]].get()
        recorded, real = frame.get("result") or {}, answer.get("result") or {}
        if ("error" in answer) != ("error" in frame) or recorded.get("outcome") != real.get(
            "outcome"
        ):
            sys.stderr.write(f"recorded was {json.dumps(frame)}, and it is {json.dumps(answer)}\n")
            sys.stderr.flush()
            os._exit(3)
        if "terminalId" in recorded:
            self.terminals[recorded["terminalId"]] = real["terminalId"]


replay = Replay()
threading.Thread(target=replay.read, daemon=True).start()
replay.serve()
