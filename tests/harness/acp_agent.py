"""An agent of the Agent Client Protocol that does what a scene says, right or wrong. It speaks plain JSON, so that
nothing of ours hides a fault, and needs nothing but Python.

    python acp_agent.py SCENE.json

The scene's ``prompts`` are pairs of a text that a prompt holds and what is done then; the first that fits is played.
All that comes in is written to ``heard`` (a file), one message a line.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Queue
from typing import Any

SCENE = json.loads(Path(sys.argv[1]).read_text("utf-8"))
SESSION = SCENE.get("session", "agent-session-1")


class Agent:
    def __init__(self) -> None:
        self.inbox: Queue[dict[str, Any] | None] = Queue()
        self.answers: dict[int, Queue[dict[str, Any]]] = {}
        self.cancelled = threading.Event()
        self.steered: Queue[str] = Queue()
        self.last_id = 100
        self.said: str = ""
        self.terminal = ""
        self.lock = threading.Lock()

    # --- the wire ---

    def put(self, message: Any) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}))

    def raw(self, line: str) -> None:
        with self.lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def update(self, update: dict[str, Any], session: str = SESSION) -> None:
        self.put({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.last_id += 1
        request_id = self.last_id
        waiting: Queue[dict[str, Any]] = Queue()
        self.answers[request_id] = waiting
        self.put({"id": request_id, "method": method, "params": {"sessionId": SESSION, **params}})
        return waiting.get()

    def read(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "heard" in SCENE:
                with Path(SCENE["heard"]).open("a", encoding="utf-8") as file:
                    file.write(line.strip() + "\n")
            if "method" not in message:
                if message["id"] in self.answers:
                    self.answers[message["id"]].put(message)
            elif message["method"] == "session/cancel":
                self.cancelled.set()
            elif message["method"] == "_session/steering":
                self.steered.put("".join(b.get("text", "") for b in message["params"]["prompt"]))
                self.put(
                    {"id": message["id"], "result": SCENE.get("steering", {"outcome": "injected"})}
                )
            else:
                self.inbox.put(message)
        if not SCENE.get("outlives_its_input"):
            os._exit(0)

    # --- what is asked of it ---

    def serve(self) -> None:
        while (message := self.inbox.get()) is not None:
            if "id" not in message:
                continue
            method = message["method"]
            if method in SCENE.get("silent", ()):
                continue
            fault = SCENE.get("faults", {}).get(method)
            fault = fault or SCENE.get("faults_once", {}).pop(method, None)
            if fault is not None:
                self.put({"id": message["id"], "error": fault})
                continue
            for action in SCENE.get("before", {}).get(method, ()):
                self.play(action)
            if method == "session/prompt":
                threading.Thread(target=self.prompt, args=(message,), daemon=True).start()
                continue
            self.put({"id": message["id"], "result": self.result(method, message["params"])})
            for action in SCENE.get("after", {}).get(method, ()):
                self.play(action)

    def result(self, method: str, params: dict[str, Any]) -> Any:
        match method:
            case "initialize":
                return {
                    "protocolVersion": SCENE.get("version", 1),
                    "agentCapabilities": SCENE.get("capabilities", {}),
                    "authMethods": SCENE.get("auth_methods", []),
                    "agentInfo": {"name": "puppet", "version": "1.0"},
                    "_meta": SCENE.get("meta", {}),
                }
            case "session/new":
                return {"sessionId": SESSION, **SCENE.get("opened", {})}
            case "session/set_config_option":
                options = SCENE.get("opened", {}).get("configOptions", [])
                for option in options:
                    if option["id"] == params["configId"]:
                        option["currentValue"] = params["value"]
                return {"configOptions": options}
            case _:
                return SCENE.get("opened", {}) if method.startswith("session/") else {}

    # --- a prompt ---

    def prompt(self, message: dict[str, Any]) -> None:
        text = "\n".join(block.get("text", "") for block in message["params"]["prompt"])
        self.cancelled.clear()
        self.said = text
        actions = next((acts for part, acts in SCENE["prompts"] if part in text), [{"say": "?"}])
        stop = "end_turn"
        for action in actions:
            if "stop" in action:
                stop = action["stop"]
                continue
            if "fail" in action:
                self.put({"id": message["id"], "error": action["fail"]})
                return
            if self.play(action) == "cancelled":
                stop = "cancelled"
                break
        self.put({"id": message["id"], "result": {"stopReason": stop, **SCENE.get("used", {})}})
        for action in SCENE.get("late", ()):
            self.play(action)

    def play(self, action: dict[str, Any]) -> str | None:
        for name, value in action.items():
            match name:
                case "say" | "think":
                    kind = "agent_message_chunk" if name == "say" else "agent_thought_chunk"
                    said = value.replace("{said}", self.said).replace("{pid}", str(os.getpid()))
                    block = {"type": "text", "text": said}
                    self.update({"sessionUpdate": kind, "content": block})
                case "update":
                    self.update(value)
                case "foreign":
                    self.update(value, session="somebody-elses")
                case "raw":
                    self.raw(value)
                case "stderr":
                    sys.stderr.write(value + "\n")
                    sys.stderr.flush()
                case "permission":
                    answer = self.ask("session/request_permission", value)
                    outcome = answer["result"]["outcome"]
                    chosen = outcome.get("optionId", outcome["outcome"])
                    self.update(
                        {
                            "sessionUpdate": "agent_message_chunk",
                            "content": {"type": "text", "text": f"[{chosen}]"},
                        }
                    )
                    if outcome["outcome"] == "cancelled":
                        return "cancelled"
                    if chosen.startswith("reject"):
                        return None
                case "ask":
                    params = json.loads(
                        json.dumps(value["params"]).replace("{terminal}", self.terminal)
                    )
                    answer = self.ask(value["method"], params)
                    told = answer.get("result", answer.get("error"))
                    self.terminal = (told or {}).get("terminalId", self.terminal)
                    if value.get("tell", True):
                        text = json.dumps(told, sort_keys=True)
                        block = {"type": "text", "text": f"<{text}>"}
                        self.update({"sessionUpdate": "agent_message_chunk", "content": block})
                case "flood":
                    for _ in range(value):
                        block = {"type": "text", "text": "x" * 1000}
                        self.update({"sessionUpdate": "agent_message_chunk", "content": block})
                case "calls":
                    for number in range(value["count"]):
                        parts = [
                            {
                                "type": "content",
                                "content": {"type": "text", "text": "y" * value["bytes"]},
                            }
                        ]
                        told = {"toolCallId": f"c{number}", "title": "A call", "kind": "read"}
                        self.update(
                            {
                                "sessionUpdate": "tool_call",
                                **told,
                                "status": value.get("status", "completed"),
                                "content": parts,
                                "rawOutput": {"o": "z" * value["bytes"]},
                            }
                        )
                case "many":
                    params = {"sessionId": SESSION, "update": value["update"]}
                    line = json.dumps(
                        {"jsonrpc": "2.0", "method": "session/update", "params": params}
                    )
                    for _ in range(value["count"] // 1_000):
                        self.raw("\n".join([line] * 1_000))
                case "until_cancelled":
                    self.cancelled.wait()
                    return "cancelled" if value else None
                case "until_steered":
                    block = {"type": "text", "text": f"corrected: {self.steered.get()}"}
                    self.update({"sessionUpdate": "agent_message_chunk", "content": block})
                case "until_file":
                    while not Path(value).exists():
                        time.sleep(0.01)
                case "spawn_away":
                    away = subprocess.Popen(
                        ["sleep", "600"],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                    Path(value).write_text(str(away.pid), "utf-8")
                case "touch":
                    Path(value).write_text(str(os.getpid()), "utf-8")
                case "sleeps_for_ever":
                    threading.Event().wait()
                case "exit":
                    os._exit(value)
                case _:
                    sys.exit(f"no such action: {re.escape(name)}")
        return None


agent = Agent()
threading.Thread(target=agent.read, daemon=True).start()
agent.serve()
