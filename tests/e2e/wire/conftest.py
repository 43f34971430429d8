"""A server in each framing, for every test of the wire."""

import pytest
from wire_peer import Peer


@pytest.fixture(params=["lsp", "ndjson"])
def framing(request):
    return request.param


@pytest.fixture
def start(framing):
    peers = []

    def make(*, opened=True, framing=framing, **given):
        peer = Peer(framing, **given)
        peers.append(peer)
        if opened:
            peer.open()
        return peer

    yield make
    for peer in peers:
        peer.close()


@pytest.fixture(scope="module")
def running():
    """A server for each framing, for tests that leave it as it was."""
    peers = {}

    def get(framing):
        if framing not in peers:
            peers[framing] = Peer(framing)
            peers[framing].open()
        peers[framing].aside.clear()
        return peers[framing]

    yield get
    for peer in peers.values():
        peer.close()


@pytest.fixture
def shared(running, framing):
    return running(framing)
