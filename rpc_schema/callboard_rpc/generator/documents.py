"""All published documents as text, by their path below ``rpc_schema/generated``."""

import json
from typing import Any

from .collect import contract
from .json_schema import json_schema
from .lua import lua
from .tables import errors_table, events_table, methods_table
from .typescript import typescript


def documents() -> dict[str, str]:
    """Deterministic: the same contract gives the same bytes everywhere."""
    whole = contract()
    return {
        "errors.json": _json(errors_table()),
        "events.json": _json(events_table(whole)),
        "lua/callboard.lua": lua(whole),
        "methods.json": _json(methods_table()),
        "schema.json": _json(json_schema(whole)),
        "typescript/callboard.ts": typescript(whole),
    }


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
