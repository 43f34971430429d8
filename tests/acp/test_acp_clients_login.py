"""The way to log in, as the SDKs' clients understand it."""

import pytest
from acp_clients import Place, SdkClient
from test_acp_login import INSTANT, LOGIN, TERMINAL


@pytest.mark.parametrize("sdk", ["python", "typescript"])
def test_the_sdks_understand_the_way_to_log_in(place: Place, sdk: str) -> None:
    with SdkClient(place, sdk) as client:
        hello = client.connect(**TERMINAL)
        instant, login = hello["authMethods"]
        assert (instant["id"], login["id"], login["type"]) == (INSTANT, LOGIN, "terminal")
        assert login["args"] == ["login"]
        client.do("authenticate", methodId=instant["id"])
        client.leave()
