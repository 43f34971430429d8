"""The fast start over a pair of pipes, and the parts that need no process."""

import os
import subprocess
import sys

import orjson
import pytest

from callboard.rpc import boot
from callboard.rpc.call import Served
from callboard.rpc.dispatcher import Dispatcher
from callboard.rpc.fault import Faults
from callboard.rpc.framing import Frame, encode_frame
from callboard.rpc.wire import Wire, WireClosed


def handshake(params):
    return {"serverInfo": {"name": "n", "version": "v"}, "storeId": "s", "seen": params}


@pytest.fixture
def pipes():
    """What the client writes to, what it reads from, and the server's wire between them."""
    theirs, to_server = os.pipe()
    from_server, ours = os.pipe()
    wire = Wire(theirs, ours)
    yield to_server, from_server, wire
    wire.close()
    for fd in (to_server, from_server):
        try:
            os.close(fd)
        except OSError:
            continue


def initialize(**params):
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})


@pytest.mark.parametrize("framing", ["lsp", "ndjson"])
def test_a_plain_initialize_is_answered_and_the_rest_handed_over(pipes, framing):
    to_server, from_server, wire = pipes
    more = encode_frame(framing, b'{"x":1}')
    os.write(to_server, encode_frame(framing, initialize(processId=5)) + more + more[:5])
    left = boot.start(wire, handshake)
    assert b'"storeId":"s"' in os.read(from_server, 65536)
    assert left.params == {"processId": 5}
    assert left.pending == [Frame(b'{"x":1}')]
    assert left.frames.feed(more[5:]) == [Frame(b'{"x":1}')]
    assert not left.ended


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"jsonrpc":"2.0","id":1,"method":"shutdown"}',
        b'{"jsonrpc":"2.0","id":null,"method":"initialize","params":{}}',
        b'{"jsonrpc":"1.0","id":1,"method":"initialize","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize"}',
        initialize(processId="5"),
        initialize(processId=True),
        initialize(processId=2**63),
        initialize(clientInfo={"version": "1"}),
        initialize(callboard=[]),
        initialize(callboard={"protocolVersions": ["9.9"]}),
        initialize(callboard={"protocolVersions": None}),
        initialize(callboard={"capabilities": {"deltas": 1}}),
        initialize(initializationOptions={"callboard": {"experimental": "yes"}}),
    ],
)
def test_anything_else_is_handed_over_unanswered(pipes, body):
    to_server, from_server, wire = pipes
    os.write(to_server, body + b"\n")
    left = boot.start(wire, handshake)
    assert left.params is None
    assert left.pending == [Frame(body)]
    os.set_blocking(from_server, False)
    with pytest.raises(BlockingIOError):
        os.read(from_server, 1)


def test_a_handshake_that_fails_is_left_to_the_full_server(pipes):
    to_server, _, wire = pipes
    os.write(to_server, initialize() + b"\n")

    def broken(_):
        raise OSError("the store is corrupt")

    assert boot.start(wire, broken).params is None


def test_the_end_of_the_input_is_handed_over_too(pipes):
    to_server, _, wire = pipes
    os.write(to_server, initialize())  # without its line end
    os.close(to_server)
    left = boot.start(wire, handshake)
    assert left.ended
    assert left.params == {}


def test_a_client_that_is_gone_already_ends_the_start(pipes):
    to_server, from_server, wire = pipes
    os.write(to_server, initialize() + b"\n")
    os.close(from_server)
    assert boot.start(wire, handshake).ended


def test_the_fast_start_imports_nothing_heavy():
    code = "import sys; import callboard.rpc.boot; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert not loaded & {
        "attrs",
        "attr",
        "cattrs",
        "asyncio",
        "anyio",
        "pygls",
        "lsprotocol",
        "httpx",
    }


def test_without_stdin_the_wire_says_what_is_missing():
    code = (
        "import os; from callboard.rpc.wire import Wire, WireClosed\n"
        "os.close(0)\n"
        "try:\n    Wire.take_stdio()\nexcept WireClosed as fault:\n    print(fault)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "stdin and stdout must be open" in run.stdout


def test_a_write_to_a_client_that_is_gone_is_the_end_of_the_wire(pipes):
    _, from_server, wire = pipes
    os.close(from_server)
    with pytest.raises(WireClosed):
        wire.write(b"x")


def test_a_json_text_with_line_ends_is_one_line():
    assert encode_frame("ndjson", b'{\n"a": 1\n}') == b'{ "a": 1 }\n'


@pytest.mark.parametrize("name", ["no/such", "event/batch", "approval/request"])
def test_a_handler_for_a_method_that_is_not_in_the_table_cannot_exist(name):
    dispatcher = Dispatcher(None, faults=Faults(str), new_id=lambda: "c")
    with pytest.raises(ValueError, match=name):
        dispatcher.serve(Served(handlers={name: print}))
