"""Many processes, each busy with everything at once, on one store.

Each worker has a server of its own and one client of it, and does one thing after the other to sessions
that all share. What it was told goes into a ledger; at the end every log is held against all ledgers.
"""

import contextlib
import itertools
import json
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fsync_floor import Floor, measured

from harness.invariants import Broken, check_file, check_session, hold
from harness.process import PATIENCE_S, RpcError, ServerProcess, scenario

TIMED = (str(Path(__file__).with_name("timed_server.py")), "serve")
SCENE = """
rules:
  - when: {system: {contains: "You write the summary"}}
    answer: [{say: "A summary."}]
  - when: {last_user: {regex: "^(p[0-9.]+) slow$"}}
    answer: [{say: {text: "answering {{match.1}} ", repeat: 8, delay_ms: 40}}]
  - when: {last_user: {regex: "^(p[0-9.]+) write$"}, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: "{{match.1}}.txt", content: "{{match.1}}"}}
      - call: {tool: list_files, arguments: {path: .}}
  - when: {last_user: {regex: "^(p[0-9.]+) ask$"}, step: 0}
    answer:
      - call: {tool: run_command, arguments: {command: "echo $CALLBOARD_CALL >> ran.txt"}}
default:
  - say: "answered {{last_user}}"
"""
CONFIG = """
features = ["agents.interrupts", "agents.messaging"]
[approvals.policy]
execute = "ask"
write = "allow"
"""
KINDS = ("talk", "talk", "talk", "write", "ask", "slow")
LOST_RACES = frozenset(
    {
        "sessionNotFound", "sessionClosed", "sessionArchived", "queueFull", "turnInProgress",
        "alreadyResolved", "approvalNotFound", "turnMismatch", "turnNotFound", "agentNotFound",
        "agentClosed", "nameInUse", "limitReached", "depthExceeded", "leaseLost",
    }
)  # fmt: skip
"""What may be refused because another worker was first. Anything else is a fault, a lock error above all."""


class Shared:
    """The sessions that workers do things to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: list[str] = []
        self.deleted: set[str] = set()

    def add(self, session_id: str) -> None:
        with self._lock:
            self._sessions.append(session_id)

    def remove(self, session_id: str) -> None:
        with self._lock:
            self.deleted.add(session_id)
            if session_id in self._sessions:
                self._sessions.remove(session_id)

    def all(self) -> list[str]:
        with self._lock:
            return list(self._sessions)


class Client(ServerProcess):
    """Takes all events in, in the order in which they come."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.heard: list[tuple[int, str, int]] = []
        """Position, session and seq."""
        super().__init__(folder, **more)
        self.subscribe("start")

    def subscribe(self, begin: str) -> None:
        self.call("event/subscribe", scope={"kind": "all"}, **{"from": begin})

    def receive(self, timeout: float = PATIENCE_S) -> dict[str, Any]:
        message = super().receive(timeout)
        self.seen.clear()
        if message.get("method") == "event/batch":
            params = message["params"]
            self.heard += [(e["pos"], e["sessionId"], e["seq"]) for e in params["events"]]
            if params["events"]:
                self.notify(
                    "event/ack", subscriptionId=params["subscriptionId"], cursor=params["cursor"]
                )
        hold(message.get("method") != "event/reset", "a client that keeps up was reset", message)
        return message


class Worker:
    """One process, its client, and what it was told."""

    def __init__(self, number: int, folder: Path, cwd: Path, shared: Shared, seed: int) -> None:
        self.number, self.folder, self.cwd, self.shared = number, folder, cwd, shared
        self.chance = random.Random(seed * 1_000 + number)
        self.prompts: dict[str, tuple[str, int]] = {}
        """By text: session and seq."""
        self.refused_prompts: set[str] = set()
        self.titles: dict[str, str] = {}
        self.modes: Counter[str] = Counter()
        self.created: list[str] = []
        self.decided: dict[str, dict[str, Any]] = {}
        self.summaries: list[tuple[str, int]] = []
        self.keyed: list[tuple[str, dict[str, Any], Any]] = []
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.seconds = 0.0
        self.fault: BaseException | None = None
        self.times = folder / f"times-{number}.json"
        self._count = 0
        self._ops: dict[Callable[[], None], int] = {
            self.prompt: 26, self.steer: 6, self.cancel: 6, self.answer: 14, self.mode: 4,
            self.update: 8, self.list: 5, self.get: 8, self.turns: 3, self.events: 5,
            self.search: 1, self.export: 3, self.compact: 3, self.archive: 3, self.close: 1,
            self.delete: 1, self.create: 3, self.repeat: 6,
        }  # fmt: skip

    def start(self, model: str) -> None:
        self.server = Client(
            self.folder, model=model, client_id=f"client-{self.number}", approvals=False,
            program=TIMED, environ={"TIMED_TO": str(self.times)},
        )  # fmt: skip

    def work(self, count: int) -> None:
        """`count` operations, one after the other."""
        began = time.monotonic()
        try:
            for _ in range(count):
                (op,) = self.chance.choices(list(self._ops), list(self._ops.values()))
                try:
                    op()
                except RpcError as error:
                    if error.kind not in LOST_RACES:
                        raise
                    self.refused[error.kind] += 1
                self.done[op.__name__] += 1
        except BaseException as fault:
            self.fault = fault
        self.seconds = time.monotonic() - began

    # --- operations ---

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _pick(self) -> str:
        sessions = self.shared.all()
        return self.chance.choice(sessions) if sessions else self._create()

    def _change(self, method: str, **params: Any) -> Any:
        """Asks for a change, half the time with a key."""
        if self.chance.random() < 0.5:
            return self.server.call(method, **params)
        params["idempotencyKey"] = f"key-{self._next()}"
        answer = self.server.call(method, **params)
        self.keyed.append((method, params, answer))
        return answer

    def create(self) -> None:
        self._create()

    def _create(self) -> str:
        told = self._change("session/create", cwd=str(self.cwd), mode="work")
        session_id: str = told["session"]["sessionId"]
        self.created.append(session_id)
        self.shared.add(session_id)
        return session_id

    def prompt(self, delivery: str = "auto") -> None:
        session_id = self._pick()
        text = f"p{self.number}.{self._next()} {self.chance.choice(KINDS)}"
        params: dict[str, Any] = {"content": [{"type": "text", "text": text}], "delivery": delivery}
        if self.chance.random() < 0.3:
            params["clientMessageId"] = text
        try:
            told = self._change("session/prompt", sessionId=session_id, **params)
        except RpcError:
            self.refused_prompts.add(text)
            raise
        self.prompts[text] = (session_id, told["eventSeq"])
        if "clientMessageId" in params:
            again = self.server.call("session/prompt", sessionId=session_id, **params)
            hold(again["eventSeq"] == told["eventSeq"], text, "was taken twice")

    def steer(self) -> None:
        self.prompt("steer")

    def cancel(self) -> None:
        scope = self.chance.choice(("turn", "turn", "queue", "tree"))
        self._change("session/cancel", sessionId=self._pick(), scope=scope)

    def answer(self) -> None:
        pending = self.server.call("approval/list", state="pending", limit=20)["data"]
        if not pending:
            return
        approval = self.chance.choice(pending)["approvalId"]
        option = self.chance.choice(("allow_once", "allow_once", "reject_once"))
        told = self._change("approval/answer", approvalId=approval, optionId=option)
        self.decided[approval] = told["approval"]["resolution"]

    def mode(self) -> None:
        session_id = self._pick()
        self._change(
            "session/update", sessionId=session_id, mode=self.chance.choice(("ask", "work"))
        )
        self.modes[session_id] += 1

    def update(self) -> None:
        session_id = self._pick()
        title = f"title {self.number}.{self._next()}"
        told = self._change("session/update", sessionId=session_id, title=title, pinned=True)
        hold(told["session"]["sessionId"] == session_id, told)
        self.titles[title] = session_id

    def list(self) -> None:
        page = self.server.call("session/list", limit=5)
        if page.get("nextCursor"):
            self.server.call("session/list", limit=5, cursor=page["nextCursor"])

    def get(self) -> None:
        session_id = self._pick()
        got = self.server.call("session/get", sessionId=session_id)
        hold(got["session"]["sessionId"] == session_id, got)

    def turns(self) -> None:
        self.server.call("session/turns", sessionId=self._pick(), limit=5)

    def events(self) -> None:
        session_id = self._pick()
        page = self.server.call("event/list", scope={"kind": "session", "id": session_id}, limit=50)
        seqs = [e["seq"] for e in page["data"] if e["type"] != "session_deleted"]
        hold(seqs == list(range(1, len(seqs) + 1)), session_id, seqs)

    def search(self) -> None:
        self.server.call("session/search", query="answered", limit=5)

    def export(self) -> None:
        form = self.chance.choice(("jsonl", "markdown"))
        self.server.call("session/export", sessionId=self._pick(), format=form, limit=50)

    def compact(self) -> None:
        session_id = self._pick()
        told = self._change("session/compact", sessionId=session_id)
        if told["compacted"]:
            self.summaries.append((session_id, told["summarySeq"]))

    def archive(self) -> None:
        session_id = self._pick()
        self._change("session/archive", sessionId=session_id)
        with contextlib.suppress(RpcError):
            self._change("session/unarchive", sessionId=session_id)

    def close(self) -> None:
        if len(self.shared.all()) > 8:
            self._change("session/close", sessionId=self._pick())

    def delete(self) -> None:
        if len(self.shared.all()) > 8:
            session_id = self._pick()
            self._change("session/delete", sessionId=session_id)
            self.shared.remove(session_id)

    def repeat(self) -> None:
        """A request from before, with its key: nothing is done, and the answer is the first one."""
        if self.keyed:
            method, params, answer = self.chance.choice(self.keyed)
            again = self.server.call(method, **params)
            hold(again == answer, method, params, "was answered", answer, "and then", again)


class Storm:
    """`processes` workers on one store in `folder`."""

    worker = Worker

    def __init__(self, folder: Path, *, processes: int, seed: int) -> None:
        self.folder = folder
        self.cwd = folder / "work"
        self.cwd.mkdir()
        config = folder / "home" / "config"
        config.mkdir(parents=True)
        (config / "config.toml").write_text(CONFIG, "utf-8")
        self.model = scenario(folder, SCENE)
        self.shared = Shared()
        self.floor = Floor()
        self.workers = [
            self.worker(number, folder, self.cwd, self.shared, seed) for number in range(processes)
        ]

    def _each(self, run: Callable[[Worker], None]) -> None:
        faults: list[BaseException] = []

        def one(worker: Worker) -> None:
            try:
                run(worker)
            except BaseException as fault:
                faults.append(fault)

        threads = [threading.Thread(target=one, args=(worker,)) for worker in self.workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if faults:
            raise faults[0]

    @contextlib.contextmanager
    def servers(self) -> Iterator[None]:
        try:
            self._each(lambda worker: worker.start(self.model))
            yield
        finally:
            for worker in self.workers:
                if hasattr(worker, "server"):
                    worker.server.process.kill()
                    worker.server.__exit__()

    def run(self, count: int) -> dict[str, list[dict[str, Any]]]:
        """`count` operations in each process; the log of every session that is left, when all has
        ended. The servers have ended then, too."""
        with self.servers():
            for _ in range(6):
                self.workers[0]._create()
            with measured(self.folder) as self.floor:
                self._each(lambda worker: worker.work(count))
            for worker in self.workers:
                if worker.fault is not None:
                    raise worker.fault
            self._settle()
            logs = {s: self.workers[0].server.events(s) for s in self.shared.all()}
            self._hear_all()
            for worker in self.workers:
                hold(worker.server.close() == 0, "exit code", worker.server.process.returncode)
                said = worker.server.stderr()
                hold("Traceback" not in said and "locked" not in said, said)
        return logs

    def _settle(self) -> None:
        """Answers what is asked, until nothing runs and nothing waits."""
        server = self.workers[0].server
        for session_id in self.shared.all():
            while True:
                waited = server.wait(session_id, "attention")
                if waited["reason"] != "attention":
                    break
                for approval in waited["approvals"]:
                    with contextlib.suppress(RpcError):
                        told = server.call(
                            "approval/answer",
                            approvalId=approval["approvalId"],
                            optionId="reject_once",
                        )
                        self.workers[0].decided[approval["approvalId"]] = told["approval"][
                            "resolution"
                        ]
            if waited["reason"] == "turnEnd":
                server.wait(session_id)

    def _hear_all(self) -> None:
        """Every client has heard of everything, once and in order."""
        page = self.workers[0].server.call(
            "event/list", scope={"kind": "all"}, before=None, limit=1
        )
        head = int(page["cursor"].rpartition(".")[2])

        def hear(worker: Worker) -> None:
            while not worker.server.heard or worker.server.heard[-1][0] < head:
                worker.server.receive()

        self._each(hear)

    # --- the count ---

    def check(self, logs: dict[str, list[dict[str, Any]]]) -> None:
        """Nothing lost, nothing twice."""
        check_file(self.folder / "store.db")
        tried: dict[str, set[str]] = {}
        with contextlib.closing(sqlite3.connect(self.folder / "store.db")) as connection:
            rows = connection.execute("SELECT session_id, kind FROM inbox WHERE attempts > 0")
            for session_id, kind in rows:
                tried.setdefault(session_id, set()).add(kind)
        for session_id, events in logs.items():
            check_session(session_id, events, tried=tried.get(session_id, ()))
        positions = sorted(e["pos"] for events in logs.values() for e in events)
        hold(len(set(positions)) == len(positions), "a position was given twice")
        said = Counter(
            e["data"]["content"][0]["text"]
            for events in logs.values()
            for e in events
            if e["type"] == "message" and e["data"]["author"]["kind"] == "person"
        )
        hold(set(said.values()) <= {1}, "said twice:", [t for t, n in said.items() if n > 1])
        for worker in self.workers:
            self._check_ledger(worker, logs, said)
            heard = [pos for pos, _, _ in worker.server.heard]
            hold(all(a < b for a, b in itertools.pairwise(heard)), "heard out of order")
            missed = set(positions) - set(heard)
            hold(not missed, worker.number, "never heard of", sorted(missed)[:20])
        self._check_commands(logs)

    def _check_ledger(
        self, worker: Worker, logs: dict[str, list[dict[str, Any]]], said: Counter[str]
    ) -> None:
        gone = self.shared.deleted
        for session_id in worker.created:
            hold(session_id in gone or session_id in logs, session_id, "was created and is lost")
        for text, (session_id, seq) in worker.prompts.items():
            if session_id not in gone:
                event = logs[session_id][seq - 1]
                hold(
                    event["data"].get("content", [{}])[0].get("text") == text, text, "became", event
                )
        hold(not worker.refused_prompts & set(said), "refused, and in the log all the same")
        titles = {
            e["data"]["changes"].get("title"): s
            for s, events in logs.items() for e in events if e["type"] == "session_updated"
        }  # fmt: skip
        for title, session_id in worker.titles.items():
            hold(session_id in gone or titles.get(title) == session_id, title, "is lost")
        decided = {
            e["data"]["approvalId"]: e["data"]["resolution"]
            for events in logs.values() for e in events if e["type"] == "approval_decision"
        }  # fmt: skip
        for approval, resolution in worker.decided.items():
            hold(decided.get(approval, resolution) == resolution, approval, "was decided otherwise")
        for session_id, seq in worker.summaries:
            hold(
                session_id in gone or logs[session_id][seq - 1]["type"] == "summary",
                "a summary is lost:", session_id, seq,
            )  # fmt: skip

    def _check_commands(self, logs: dict[str, list[dict[str, Any]]]) -> None:
        modes: Counter[str] = Counter()
        for worker in self.workers:
            modes += worker.modes
        for session_id, events in logs.items():
            changed = sum(e["type"] == "mode_changed" for e in events)
            hold(changed == modes[session_id], session_id, "modes", changed, modes[session_id])
        place = self.cwd / "ran.txt"
        ran = Counter(place.read_text().split() if place.exists() else ())
        hold(set(ran.values()) <= {1}, "ran twice:", ran)
        for events in logs.values():
            for e in events:
                if e["type"] == "tool_result" and e["data"]["name"] == "run_command":
                    status, call = e["data"]["status"], e["data"]["callId"]
                    hold(status != "ok" or ran[call] == 1, call, "is said to have run and has not")
                    hold(status != "denied" or ran[call] == 0, call, "was denied and ran")

    # --- what it took ---

    def commits_ms(self) -> list[list[float]]:
        """How long each commit of each process took, from being submitted to being known."""
        return [
            [1000 * s for s in json.loads(w.times.read_text())] for w in self.workers
        ]  # fmt: skip

    def report(self) -> str:
        done, refused = Counter[str](), Counter[str]()
        for worker in self.workers:
            done += worker.done
            refused += worker.refused
        seconds = sorted(worker.seconds for worker in self.workers)
        slowest = [max(taken) for taken in self.commits_ms()]
        return (
            f"{done.total()} operations {dict(done)}; lost races {dict(refused)}; "
            f"workers took {seconds[0]:.1f}-{seconds[-1]:.1f} s; "
            f"slowest commit of each {', '.join(f'{s:.0f}' for s in slowest)} ms "
            f"of {sum(map(len, self.commits_ms()))}; {self.floor}"
        )


__all__ = ["Broken", "Storm"]
