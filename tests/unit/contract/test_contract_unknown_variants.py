"""PROTOCOL 2: a client tolerates what a newer server may say."""

import pytest

from callboard_rpc.common import TextContent, UnknownVariant
from callboard_rpc.convert import StructureError, structure, structure_lenient, unstructure
from callboard_rpc.events import Message

HOLOGRAM = {"type": "hologram", "beam": 3, "_meta": {"a": 1}}
WIRE = {
    "messageId": "msg_1",
    "author": {"kind": "agent", "name": "a"},
    "content": [{"type": "text", "text": "hi"}, HOLOGRAM],
}


def test_a_block_of_an_unknown_kind_is_kept_as_it_came_by_a_client() -> None:
    message = structure_lenient(WIRE, Message)
    assert message.content == (
        TextContent(text="hi"),
        UnknownVariant(type="hologram", fields=HOLOGRAM),
    )
    assert unstructure(message)["content"][1] == HOLOGRAM


def test_a_server_refuses_it_and_says_which_kinds_there_are() -> None:
    with pytest.raises(StructureError, match=r"\$\.content\[1\]: 'type' must be one of text"):
        structure(WIRE, Message)
