"""A real server process made of the wire's own parts, with handlers that misbehave when asked to.

``server/ping`` with ``{"echo": {"do": NAME, ...}}`` does something; with any other echo it answers.
"""

import contextvars
import json
import os
import sys

from callboard.rpc import boot
from callboard.rpc.wire import Wire

SECRET = "sk-probe-secret"
MARK: contextvars.ContextVar[str] = contextvars.ContextVar("probe", default="clean")


def handshake(params):
    return {
        "protocolVersion": "?",
        "storeId": "store_1",
        "hostId": "host_1",
        "serverInfo": {"name": "probe", "version": "0"},
        "features": {},
        "limits": {"maxFrameBytes": 1, "pageItems": 1, "pageBytes": 1, "window": 1},
        "head": "st:0",
        "heavy": sorted({"pygls", "lsprotocol", "asyncio", "attrs"} & set(sys.modules)),
    }


def options():
    return json.loads(os.environ.get("PROBE", "{}"))


async def serve(wire, started):
    import asyncio
    import itertools
    import subprocess
    from pathlib import Path

    import anyio
    import orjson

    from callboard.rpc.call import Served
    from callboard.rpc.connection import Merge, PeerError
    from callboard.rpc.server import WireLimits, serve_connection
    from callboard_rpc.common import Empty
    from callboard_rpc.errors import CallboardError
    from callboard_rpc.server import PingResult

    order = []
    notes = []
    state = {"ended": None, "closed": None, "outcomes": {}}
    ticks = [0]

    async def ticker():
        while True:
            await asyncio.sleep(0.005)
            ticks[0] += 1

    async def ping(call, params):
        order.append(call.request_id)
        act = params.echo
        if not (isinstance(act, dict) and "do" in act):
            return PingResult(at="now", head="st:0", echo=act)
        answer = await ACTIONS[act["do"]](call, act)
        return PingResult(at="now", head="st:0", echo=answer)

    async def fail(call, act):
        raise ValueError(f"inner detail {SECRET}")

    async def fail_group(call, act):
        async with anyio.create_task_group() as group:
            group.start_soon(known)

    async def known(*_):
        raise CallboardError("sessionNotFound", f"no session {SECRET}")

    async def late(call, act):
        with anyio.fail_after(0):
            await anyio.sleep_forever()

    async def leave(call, act):
        sys.exit(3)

    async def stray(call, act):
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.cancel)
        await future

    async def unserialisable(call, act):
        return {1, 2}

    async def unsayable(call, act):
        raise CallboardError("sessionNotFound", "no session", data={"seen": {1, 2}})

    async def not_a_number(call, act):
        return float("nan")

    async def surrogate(call, act):
        return "half \ud83d end"

    async def fragment(call, act):
        return orjson.Fragment(b'{"raw":true}')

    async def prints(call, act):
        print("printed by python")
        sys.stdout.flush()
        os.write(1, b"printed by a library\n")
        subprocess.run(["sh", "-c", "echo printed by a child"], check=True)
        child = subprocess.run(
            [sys.executable, "-c", "import sys; print(sys.stdin.read() == '')"],
            check=True,
            capture_output=True,
        )
        return child.stdout.decode().strip()

    async def inherited(call, act):
        """Which descriptors a child holds that are the wire."""
        mine = {fd: os.fstat(fd).st_ino for fd in (wire.read_fd, wire.write_fd)}
        code = """
import os, sys
held = []
for fd, inode in eval(sys.argv[1]).items():
    try:
        held += [fd] if os.fstat(fd).st_ino == inode else []
    except OSError:
        pass
print(held)
"""
        run = subprocess.run(
            [sys.executable, "-c", code, repr(mine)], capture_output=True, close_fds=False
        )
        return run.stdout.decode().strip()

    async def speak(call, act):
        """Says something where no client has to read, once a timer of the loop has fired."""
        await anyio.sleep(0.01)
        print("spoken:", act["text"], file=sys.stderr, flush=True)

    async def block(call, act):
        try:
            await anyio.sleep_forever()
        finally:
            state["outcomes"][str(call.request_id)] = "stopped"
            print("stopped:", call.request_id, file=sys.stderr, flush=True)

    async def shielded(call, act):
        with anyio.CancelScope(shield=True):
            await release.wait()
        return "finished"

    async def set_release(call, act):
        release.set()

    async def report(call, act):
        return {
            "order": order,
            "notes": notes,
            "closed": state["closed"],
            "outcomes": state["outcomes"],
            "ticks": ticks[0],
            "inFlight": call.connection.in_flight,
            "heavy": sorted({"pygls", "lsprotocol"} & set(sys.modules)),
            "frames": call.connection.outbound_frames,
            "client": call.client_id,
            "deltas": call.capabilities.deltas,
        }

    async def mark(call, act):
        seen = MARK.get()
        MARK.set("dirty")
        await anyio.lowlevel.checkpoint()
        return seen

    async def announce(call, act):
        call.after_reply(lambda: call.connection.notify("event/batch", {"id": "made"}))
        await anyio.lowlevel.checkpoint()
        return "made"

    async def announce_and_fail(call, act):
        call.after_reply(lambda: call.connection.notify("event/batch", {"id": "never"}))
        raise CallboardError("sessionNotFound", "no session")

    async def flood(call, act):
        text = "x" * act["bytes"]
        for index in range(act["count"]):
            call.connection.notify("event/batch", {"index": index, "text": text})
        print("flooded:", call.request_id, file=sys.stderr, flush=True)
        return call.connection.pressure

    async def stream(call, act):
        merge = Merge(
            key="k",
            combine=lambda a, b: {"from": a["from"], "to": b["to"], "text": a["text"] + b["text"]},
            weight=lambda p: len(p["text"]),
        )
        outcomes = [
            call.connection.notify_mergeable(
                "event/delta", {"from": i, "to": i, "text": "d" * act["bytes"]}, merge
            )
            for i in range(act["count"])
        ]
        return {name: outcomes.count(name) for name in ("queued", "merged", "dropped")}

    async def ask(call, act):
        try:
            result = await call.connection.request(
                act.get("method", "client/readFile"),
                {"uri": "file:///a"},
                timeout=act.get("timeout"),
            )
        except PeerError as fault:
            return {"peerError": fault.code, "message": fault.message}
        except TimeoutError:
            return "timeout"
        return {"text": getattr(result, "text", result)}

    async def document(call, act):
        return await call.connection.lsp.open_document_text(act["uri"])

    async def log(call, act):
        await call.connection.lsp.log_message("info", act["text"])

    async def edit(call, act):
        return await call.connection.lsp.apply_edit(act["edit"], label="probe", timeout=10)

    ACTIONS = {
        "fail": fail, "failGroup": fail_group, "late": late, "leave": leave, "stray": stray,
        "set": unserialisable, "nan": not_a_number, "surrogate": surrogate, "fragment": fragment,
        "unsayable": unsayable,
        "print": prints, "speak": speak, "inherited": inherited, "block": block, "shielded": shielded,
        "release": set_release, "report": report, "mark": mark, "announce": announce,
        "announceAndFail": announce_and_fail, "flood": flood, "stream": stream, "ask": ask,
        "document": document, "log": log, "edit": edit,
    }  # fmt: skip

    async def ack(call, params):
        notes.append(params.cursor)

    async def prompt(call, params):
        order.append(params.content[0].text)
        await anyio.lowlevel.checkpoint()
        return {"order": list(order)}

    async def shutdown(call, params):
        return Empty()

    class Replay:
        """Looks its key up slowly, so that only the gate can keep the order."""

        def __init__(self):
            self.answers = {}

        async def run(self, request, start):
            for _ in range(5):
                await asyncio.sleep(0)
            known = self.answers.get(request.key)
            if known is None:
                known = self.answers[request.key] = (request.params, await start())
            if known[0] != request.params:
                raise CallboardError("idempotencyConflict", f"{request.key} had other params")
            return known[1]

    given = options()
    ids = itertools.count(1)
    release = anyio.Event()

    from callboard.rpc.call import LspHooks

    def saw(kind):
        return lambda what: notes.append([kind, what])

    async def on_end(reason):
        state["ended"] = reason
        if given.get("endlessEnd"):
            await anyio.sleep_forever()

    def on_close(_connection, reason):
        state["closed"] = reason
        print("closed:", reason, file=sys.stderr, flush=True)

    async def served(connection):
        if given.get("endlessStart"):
            print("starting", file=sys.stderr, flush=True)
            await anyio.sleep_forever()
        return Served(
            handlers={
                "server/ping": ping,
                "event/ack": ack,
                "session/prompt": prompt,
                "shutdown": shutdown,
            },
            replay=Replay(),
        )

    ticking = asyncio.create_task(ticker())
    code = await serve_connection(
        wire,
        started,
        handshake=handshake,
        serve=served,
        on_end=on_end,
        on_close=on_close,
        redact=lambda text: text.replace(SECRET, "[redacted]"),
        new_id=lambda: f"c{next(ids)}",
        version="0",
        hooks=LspHooks(
            on_configuration=saw("configuration"),
            on_workspace_folders=saw("folders"),
            on_progress_cancel=saw("progress"),
            on_saved=saw("saved"),
        ),
        limits=WireLimits(**given.get("limits", {})),
        last_resort=os._exit,
    )
    ticking.cancel()
    if "report" in given:
        Path(given["report"]).write_text(json.dumps({**state, "code": code}))
    return code


def main():
    wire = Wire.take_stdio()
    given = options()
    started = boot.start(
        wire,
        handshake,
        framing=given.get("framing"),
        frame_limit=given.get("frameLimit", boot.DEFAULT_FRAME_LIMIT),
    )
    import asyncio

    sys.exit(asyncio.run(serve(wire, started)))


main()
