"""The table of methods and the handlers of a host are the same list."""

import pytest

from callboard.host import Feature
from callboard.rpc.handlers.client import Clients
from callboard.rpc.service import handlers_of
from callboard_rpc.methods import METHODS
from harness.inside import host_in

pytestmark = pytest.mark.anyio

LIFE_CYCLE = {"initialize", "initialized", "shutdown", "exit"}


async def test_every_method_of_a_client_has_a_handler_and_no_handler_is_without_a_method(tmp_path):
    async with host_in(tmp_path) as host:
        handlers = set(handlers_of(host, Clients(host)))
    asked = {name for name, method in METHODS.items() if method.direction == "clientToServer"}
    assert handlers | LIFE_CYCLE == asked


async def test_a_feature_brings_methods_of_its_own(tmp_path):
    async def ping(call, params):
        return None

    feature = Feature(name="x", methods=lambda host: {"server/ping": ping})
    async with host_in(tmp_path, features=[feature]) as host:
        assert handlers_of(host, Clients(host))["server/ping"] is ping
