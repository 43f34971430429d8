"""The tables beside the schema: methods, errors, events."""

from typing import Any

from ..errors import ERRORS
from ..methods import METHODS, Method
from ..version import PROTOCOL_VERSION
from .collect import type_name
from .model import Contract

Table = dict[str, Any]


def methods_table() -> Table:
    """Each method: who asks whom, with what, what comes back, and what can go wrong."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "methods": {name: _method(method) for name, method in sorted(METHODS.items())},
    }


def errors_table() -> Table:
    """Each error by its kind, with the fields that its ``data`` has beyond those of all errors."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "errors": {
            kind: {"code": spec.code, "retryable": spec.retryable, "data": list(spec.data)}
            for kind, spec in sorted(ERRORS.items())
        },
    }


def events_table(contract: Contract) -> Table:
    """Each event type, with the class of its ``data``."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "events": {
            kind.type: {"data": kind.data, "doc": contract.objects[kind.data].doc}
            for kind in contract.events
        },
    }


def _method(method: Method) -> Table:
    return {
        "direction": method.direction,
        "kind": method.kind,
        "params": type_name(method.params),
        "result": None if method.result is None else type_name(method.result),
        "errors": sorted(method.errors),
        "stability": method.stability,
        "mutates": method.mutates,
        "doc": method.doc,
    }
