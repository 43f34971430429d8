"""Kills a busy server over and over, and then counts: nothing lost, nothing twice.

    python tests/crash/kill_loop.py [--rounds 20] [--kills 300] [--prompts 60] [--seed 1] [--keep]

Each round gets a store of its own. A client sends its prompts to a few sessions (each again, with the same
idempotency key, until it was acknowledged) and answers approvals, while its server is killed with SIGKILL at
random moments and started again. Meanwhile a second server, which is killed as well, belongs to somebody who
meddles with the same sessions: answers approvals, cancels, compacts, changes modes and titles. The tests have
a few kills of it, ``make soak`` hundreds; it has no end of its own kind: raise ``--rounds`` for as long as there
is patience. The exit code says whether everything held.
"""

import argparse
import contextlib
import itertools
import queue
import random
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from crash_ledger import check_effects, check_end, snapshot

from harness.process import Gone, RpcError, ServerProcess, scenario

SCENARIO = """
chunk: 6
rules:
  - when: {system: {contains: "You write the summary"}}
    answer: [{say: {text: "A summary. ", repeat: 3, delay_ms: 10}}]
  - when: {last_user: {regex: "^(p[0-9]+) talk$"}}
    answer:
      - say: {text: "answered {{match.1}} ", repeat: 5, delay_ms: 2}
  - when: {last_user: {regex: "^(p[0-9]+) (run|ask)$"}, step: 0}
    answer:
      - say: I shall run it.
      - call: {tool: run_command, arguments: {command: "echo {{match.1}}-a $CALLBOARD_CALL >> ran.txt; sleep 0.02"}}
      - call: {tool: run_command, arguments: {command: "echo {{match.1}}-b $CALLBOARD_CALL >> ran.txt"}}
  - when: {last_user: {regex: "^(p[0-9]+) read$"}, step: 0}
    answer:
      - call: {tool: list_files, arguments: {path: .}}
      - call: {tool: read_file, arguments: {path: seed.txt}}
  - when: {last_user: {regex: "^(p[0-9]+) write$"}, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: "{{match.1}}.txt", content: "{{match.1}}"}}
default:
  - say: "answered {{last_user}}"
"""

CONFIG = """
[approvals.policy]
execute = "ask"
write = "allow"
[draft]
interval_ms = 10
"""

KINDS = ("talk", "run", "ask", "read", "write", "talk")


class Broken(Exception):
    """A promise that was not kept."""


class mortal:
    """A server that is killed at a random moment: now and then before it has answered for the first
    time, mostly a while after. Leaving the context waits for its death."""

    def __init__(
        self,
        chance: random.Random,
        folder: Path,
        model: str,
        *,
        client_id: str = "tests",
        answer: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None,
    ) -> None:
        self._client_id = client_id
        self._approvals = answer is not None
        self._early = chance.random() < 0.2
        self._within_s = chance.uniform(0.02, 0.5) if self._early else chance.uniform(0.0, 1.2)
        self.server = ServerProcess(
            folder, model=model, answer=answer, client_id=client_id, initialize=False
        )
        self._killer = threading.Timer(self._within_s, self.server.process.kill)

    def __enter__(self) -> ServerProcess:
        if self._early:
            self._killer.start()
        with contextlib.suppress(Gone, BrokenPipeError):  # whatever is said next finds it dead, too
            self._greet()
        if not self._early:
            self._killer.start()
        return self.server

    def _greet(self) -> None:
        own = {
            "protocolVersions": ["1.0"],
            "clientId": self._client_id,
            "clientInfo": {"name": self._client_id},
            "capabilities": {"approvals": self._approvals, "deltas": True},
        }
        self.server.call("initialize", processId=None, callboard=own)
        self.server.call("session/list")  # only then all of it is there

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: object
    ) -> bool:
        self._killer.join()
        self.server.kill()
        self.server.__exit__()
        return isinstance(fault, Gone | BrokenPipeError | queue.Empty)


class Meddler:
    """Somebody with a server of its own, who does to the sessions of others whatever is allowed."""

    REFUSED = frozenset(
        "alreadyResolved approvalExpired turnInProgress turnMismatch turnNotFound alreadyRunning "
        "overloaded storeBusy".split()
    )
    """What may be said to one who is late."""

    def __init__(self, round: "Round", chance: random.Random) -> None:
        self.round, self.chance = round, chance
        self.kills = 0
        self.fault: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Meddler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self._one_life()
        except BaseException as fault:
            self.fault = fault

    def _one_life(self) -> None:
        with mortal(
            self.chance, self.round.folder, self.round.model, client_id="meddler"
        ) as server:
            while True:
                try:
                    self._meddle(server)
                except RpcError as error:
                    if error.kind not in self.REFUSED:
                        raise Broken(f"the meddler was told {error}") from None
        self.kills += 1

    def _meddle(self, server: ServerProcess) -> None:
        if not self.round.sessions:
            server.call("session/list")
            return
        session = self.chance.choice(self.round.sessions)
        match self.chance.randrange(12):
            case 0:
                server.call("session/cancel", sessionId=session)
            case 1:
                server.call("session/compact", sessionId=session)
            case 2:
                server.call("session/update", sessionId=session, title=f"t{self.kills}")
            case 3 | 4 | 5 | 6:
                for approval in server.call("approval/list", state="pending")["data"]:
                    kind = self.chance.choice(("allow_once", "allow_once", "reject_once"))
                    option = next(o for o in approval["options"] if o["kind"] == kind)
                    server.call(
                        "approval/answer",
                        approvalId=approval["approvalId"],
                        optionId=option["optionId"],
                    )
            case _:
                server.wait(session, "attention", timeoutMs=self.chance.randrange(1, 100))


class Round:
    def __init__(self, folder: Path, prompts: int, chance: random.Random, *, keys: bool) -> None:
        self.folder, self.chance, self.count, self.keys = folder, chance, prompts, keys
        self.cwd = folder / "work"
        self.cwd.mkdir(parents=True)
        (self.cwd / "seed.txt").write_text("seed\n")
        config = folder / "home" / "config"
        config.mkdir(parents=True)
        (config / "config.toml").write_text(CONFIG, "utf-8")
        self.model = scenario(folder, SCENARIO)
        self.sessions: list[str] = []
        self.acknowledged: dict[int, tuple[str, int]] = {}
        """Which prompt is at which seq of which session."""
        self.told_finished: set[str] = set()
        self.kills = 0

    def server(self) -> ServerProcess:
        return ServerProcess(self.folder, model=self.model, answer=self._answer)

    def storm(self) -> None:
        """Until every prompt was acknowledged, and nobody meddles any more."""
        with Meddler(self, random.Random(self.chance.random())) as meddler:
            self._prompt_all()
        self.kills += meddler.kills
        if meddler.fault is not None:
            raise meddler.fault

    def _answer(self, approval: dict[str, Any]) -> dict[str, Any]:
        kind = "allow_once" if self.chance.random() < 0.8 else "reject_once"
        option = next(o for o in approval["options"] if o["kind"] == kind)
        return {"optionId": option["optionId"]}

    # --- the storm ---

    def _prompt_all(self) -> None:
        todo = list(range(self.count))
        while todo:
            life = mortal(self.chance, self.folder, self.model, answer=self._answer)
            with life as server:
                self._talk(server, todo)
                while True:  # until it is dead: it may be in the middle of anything
                    server.receive()
            self._remember(life.server)
            self.kills += 1

    def _talk(self, server: ServerProcess, todo: list[int]) -> None:
        server.call("event/subscribe", scope={"kind": "all"}, **{"from": "now"}, deltas=True)
        while len(self.sessions) < 4:
            self.sessions.append(server.create(self.cwd))
        while todo:
            number = todo[0]
            session = self.sessions[number % 4]
            kind = KINDS[number % len(KINDS)]
            try:
                name = "idempotencyKey" if number % 2 and self.keys else "clientMessageId"
                said = server.prompt(
                    session, f"p{number} {kind}", **{name: f"key-{number}"},
                    delivery=("auto", "queue", "steer")[number % 3],
                )  # fmt: skip
            except RpcError as error:
                raise Broken(f"p{number}: {error}") from None
            self.acknowledged[number] = (session, said["eventSeq"])
            todo.pop(0)
            if self.chance.random() < 0.3:
                server.wait(session, timeoutMs=self.chance.randrange(1, 300))

    def _remember(self, server: ServerProcess) -> None:
        for message in server.seen:
            if message.get("method") == "event/batch":
                for event in message["params"]["events"]:
                    if event["type"] == "turn_finished":
                        self.told_finished.add(event["turnId"])

    # --- the count ---

    def check(self) -> str:
        with self.server() as server:
            # only who follows is asked: a turn that is parked at the end is answered, and goes on
            server.call("event/subscribe", scope={"kind": "all"}, **{"from": "now"})
            for session in self.sessions:
                server.wait(session, timeoutMs=50_000)
                status = server.call("session/get", sessionId=session)["session"]["status"]
                if status != "idle":
                    raise Broken(f"{session} is {status} at the end")
            logs = {session: server.events(session) for session in self.sessions}
            waiting = server.call("approval/list", state="pending")["data"]
            if waiting:
                raise Broken(f"approvals wait though all is idle: {waiting}")
            said = server.stderr()
            if server.close() != 0:
                raise Broken(f"exit code {server.process.returncode}")
        if "Traceback" in said:
            raise Broken(f"stderr: {said}")
        connection = sqlite3.connect(self.folder / "store.db")
        if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise Broken("integrity check")
        if connection.execute("SELECT count(*) FROM drafts").fetchone() != (0,):
            raise Broken("drafts are left")
        connection.close()
        end = snapshot(self.folder / "store.db")
        check_end(end)
        ran = self.cwd / "ran.txt"
        check_effects(end, ran.read_text().split()[1::2] if ran.exists() else [])
        outcomes: Counter[str] = Counter()
        for session, events in logs.items():
            self._check_log(session, events, outcomes)
        self._check_files(logs)
        return f"{self.kills} kills, outcomes {dict(outcomes)}"

    def _check_log(
        self, session: str, events: list[dict[str, Any]], outcomes: Counter[str]
    ) -> None:
        if [e["seq"] for e in events] != list(range(1, len(events) + 1)):
            raise Broken(f"{session}: seqs have holes")
        started = Counter(e["turnId"] for e in events if e["type"] == "turn_started")
        finished = Counter(e["turnId"] for e in events if e["type"] == "turn_finished")
        if started != finished or set(started.values()) - {1}:
            raise Broken(f"{session}: {started - finished} {finished - started} {started}")
        calls = Counter(e["data"]["callId"] for e in events if e["type"] == "tool_call")
        results = Counter(e["data"]["callId"] for e in events if e["type"] == "tool_result")
        if calls != results or set(calls.values()) - {1}:
            raise Broken(f"{session}: calls {calls - results}, results {results - calls}")
        asked = Counter(
            e["data"]["approval"]["approvalId"] for e in events if e["type"] == "approval_request"
        )
        decided = Counter(
            e["data"]["approvalId"] for e in events if e["type"] == "approval_decision"
        )
        if asked != decided or set(asked.values()) - {1}:
            raise Broken(f"{session}: approvals {asked - decided} {decided - asked}")
        persons = [
            e for e in events
            if e["type"] == "message" and e["data"]["author"]["kind"] == "person"
        ]  # fmt: skip
        texts = Counter(e["data"]["content"][0]["text"] for e in persons)
        if set(texts.values()) - {1}:
            raise Broken(f"{session}: twice: {texts}")
        expected = {
            seq: f"p{number} {KINDS[number % len(KINDS)]}"
            for number, (where, seq) in self.acknowledged.items()
            if where == session
        }
        found = {e["seq"]: e["data"]["content"][0]["text"] for e in persons}
        if found != expected:
            raise Broken(f"{session}: prompts {found} instead of {expected}")
        admitted = Counter(s for e in events if e["type"] == "ack" for s in e["data"]["admits"])
        if admitted != Counter(dict.fromkeys(found, 1)):
            raise Broken(f"{session}: admitted {admitted}, said {sorted(found)}")
        for event in events:
            if event["type"] == "turn_finished":
                outcomes[event["data"]["outcome"]] += 1
                if event["data"]["outcome"] not in ("completed", "interrupted", "cancelled"):
                    raise Broken(f"{session}: {event}")
        ended = {e["turnId"] for e in events if e["type"] == "turn_finished"}
        mine = {e.get("turnId") for e in events}
        if not (self.told_finished & mine) <= ended:
            raise Broken(f"{session}: a turn that was told finished is not")

    def _check_files(self, logs: dict[str, list[dict[str, Any]]]) -> None:
        ran = self.cwd / "ran.txt"
        lines = ran.read_text().splitlines() if ran.exists() else []
        if set(Counter(line.split()[0] for line in lines).values()) - {1}:
            raise Broken(f"ran twice: {Counter(lines)}")
        by_call = {line.split()[1] for line in lines}
        if len(by_call) != len(lines):
            raise Broken("a call ran twice")
        results = {
            e["data"]["callId"]: e["data"]
            for events in logs.values()
            for e in events
            if e["type"] == "tool_result" and e["data"]["name"] == "run_command"
        }
        for call, result in results.items():
            if result["status"] == "ok" and call not in by_call:
                raise Broken(f"{call} is said to have run and has not")
            if result["status"] == "denied" and call in by_call:
                raise Broken(f"{call} was denied and ran")
        unknown = by_call - set(results)
        if unknown:
            raise Broken(f"ran without a record: {unknown}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--kills", type=int, default=0, help="more rounds, until there were so many kills"
    )
    parser.add_argument("--prompts", type=int, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="leave the folders of all rounds")
    parser.add_argument(
        "--no-keys", action="store_true", help="repeat prompts by clientMessageId only"
    )
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1_000_000)
    broken = kills = 0
    for number in itertools.count():
        if number >= options.rounds and kills >= options.kills:
            break
        folder = Path(tempfile.mkdtemp(prefix="callboard-kill-"))
        began = time.monotonic()
        one = Round(folder, options.prompts, random.Random(seed + number), keys=not options.no_keys)
        try:
            one.storm()
            verdict = one.check()
            held = True
        except Exception as fault:
            verdict, held = f"BROKEN {type(fault).__name__}: {str(fault)[:3000]}", False
            broken += 1
        kills += one.kills
        print(f"seed {seed + number}: {verdict} ({time.monotonic() - began:.0f} s)", flush=True)
        if held and not options.keep:
            shutil.rmtree(folder)
        elif not held:
            print(f"  its folder is {folder}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
