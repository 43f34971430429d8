"""The loop of a server process, where packages that it can do without are missing."""

import asyncio
import sys

import pytest

from callboard.rpc import loop


async def crash():
    raise ValueError("the only fault")


@pytest.mark.parametrize("missing", [("sniffio",), ("uvloop",), ("sniffio", "uvloop")])
def test_a_crash_is_told_without_the_packages_that_are_not_installed(monkeypatch, missing):
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    before = sys.getswitchinterval()
    try:
        with pytest.raises(ValueError, match="the only fault") as crashed:
            loop.run(crash())
    finally:
        sys.setswitchinterval(before)
        asyncio.set_event_loop(None)
    assert crashed.value.__context__ is None
