"""What a recorded store looks like in a fixture: every event, and what the server says of each session.

Ids, times, folders and durations differ from run to run and say where a recording was made; they are made
neutral here, in one way for all files of a recording, so that what refers to each other still does.
"""

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness.process import RpcError, ServerProcess

FIXTURES = Path(__file__).parents[3] / "editors" / "nvim" / "tests" / "fixtures"

_IDS = re.compile(r"\b([a-z]+)_([0-9a-hjkmnp-tv-z]{26}|[0-9a-f]{32})\b")
_DIGESTS = re.compile(r"\b[0-9a-f]{64}\b")
_SHORT = re.compile(r"\b[a-z]+_[0-9a-hjkmnp-tv-z]{8}\b")
_MILLISECONDS = re.compile(r'\btime=(\\*")\d{13}')
_TIMES = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_TOOK = re.compile(r"\bin \d+\.\d+s\b")
_BEGAN = datetime(2030, 1, 1, 10, tzinfo=UTC)
_DURATIONS = {"durationMs", "delayMs"}


def everything(server: ServerProcess) -> list[dict[str, Any]]:
    """All events of the store, in their order."""
    out: list[dict[str, Any]] = []
    after: dict[str, Any] = {}
    while True:
        page = server.call("event/list", scope={"kind": "all"}, **after)
        out += page["data"]
        if page.get("nextCursor") is None:
            return out
        after = {"after": page["nextCursor"]}


def _pages(server: ServerProcess, method: str, **params: Any) -> list[dict[str, Any]]:
    page = server.call(method, **params)
    out = page["data"]
    while page.get("nextCursor") is not None:
        page = server.call(method, **params, cursor=page["nextCursor"])
        out += page["data"]
    return out


def _said_of(server: ServerProcess, session_id: str) -> dict[str, Any]:
    got = server.call("session/get", sessionId=session_id)
    said = {
        "session": got["session"],
        "draft": got.get("draft"),
        "queue": _pages(server, "session/queue", sessionId=session_id),
        "turns": _pages(server, "session/turns", sessionId=session_id),
    }
    if got["session"]["rootId"] == session_id:
        said["agents"] = _pages(server, "agent/list", rootId=session_id)
        try:
            said["tasks"] = _pages(server, "group/taskList", rootId=session_id)
        except RpcError as error:
            if error.kind not in ("featureDisabled", "notAMember"):
                raise
    return said


def taken(server: ServerProcess) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The events of the store, and what the server says at that same moment."""
    while True:
        before = server.call("server/ping")["head"]
        events = everything(server)
        sessions = sorted({e["sessionId"] for e in events})
        gone = {e["sessionId"] for e in events if e["type"] == "session_deleted"}
        said = {
            "sessions": [_said_of(server, one) for one in sessions if one not in gone],
            "approvals": _pages(server, "approval/list", state="pending"),
        }
        if server.call("server/ping")["head"] == before:
            return events, said


def _numbered(found: Iterable[str], name: Callable[[int], str]) -> dict[str, str]:
    return {old: name(number) for number, old in enumerate(sorted(set(found)), 1)}


def _steady(value: Any, at: Callable[[str], str]) -> Any:
    """With durations that are the same each time, and times that `at` gives; what took no time still took none."""
    match value:
        case dict():
            took = 1200 if "outcome" in value else 12
            return {k: took if k in _DURATIONS and v else _steady(v, at) for k, v in value.items()}
        case list():
            return [_steady(item, at) for item in value]
        case str():
            return _TIMES.sub(lambda m: at(m[0]), value)
        case _:
            return value


def _clock(events: list[dict[str, Any]]) -> Callable[[str], str]:
    """Times that tell an event's place: each thing that was written at once has that of its first event, and what
    is no event's time that of the first event that was not before it."""
    began = [event["at"] for event in events]

    def at(time: str) -> str:
        return _time(next((n for n, each in enumerate(began, 1) if each >= time), len(began)))

    return at


def _time(number: int) -> str:
    at = _BEGAN + timedelta(milliseconds=100 * number)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def neutral(text: str, folders: dict[str, str]) -> str:
    """A recording's text without what differs from run to run. `folders` says what each is called."""
    for folder, name in sorted(folders.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(folder, name).replace(folder.lstrip("/"), name.lstrip("/"))
    kinds: dict[str, set[str]] = {}
    for kind, rest in _IDS.findall(text):
        kinds.setdefault(kind, set()).add(rest)
    short: list[tuple[str, str, str]] = []
    for kind, rests in kinds.items():
        ids = _numbered(rests, "{:06d}".format)
        short += [(kind, rest, number) for rest, number in ids.items()]
        text = re.sub(
            rf"\b{kind}_({'|'.join(ids)})\b", lambda m, k=kind, i=ids: f"{k}_{i[m[1]]}", text
        )
    shortened = {f"{kind}_{rest[:8]}": f"{kind}_{number}" for kind, rest, number in short}
    text = _SHORT.sub(lambda m: shortened.get(m[0], m[0]), text)
    text = _MILLISECONDS.sub(lambda m: f"time={m[1]}{_BEGAN.timestamp() * 1000:.0f}", text)
    digests = _numbered(_DIGESTS.findall(text), "{:064x}".format)
    text = _DIGESTS.sub(lambda m: digests[m[0]], text)
    return _TOOK.sub("in 0.001s", text)


def write(
    name: str, events: list[dict[str, Any]], said: dict[str, Any], folders: dict[str, str]
) -> None:
    """Writes NAME.jsonl, an event a line, and NAME.said.json."""
    at = _clock(events)
    lines = [json.dumps(_steady(value, at), ensure_ascii=False) for value in (*events, said)]
    *lines, last = neutral("\n".join(lines), folders).split("\n")
    FIXTURES.mkdir(parents=True, exist_ok=True)
    (FIXTURES / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    pretty = json.dumps(json.loads(last), ensure_ascii=False, indent=1)
    (FIXTURES / f"{name}.said.json").write_text(pretty + "\n", "utf-8")
