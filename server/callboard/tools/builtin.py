"""The tools that every agent can have."""

from .base import Tool
from .command import RUN_COMMAND
from .files import EDIT_FILE, READ_FILE, WRITE_FILE
from .listing import LIST_FILES
from .plan import UPDATE_PLAN
from .searching import SEARCH_FILES


def builtin_tools() -> tuple[Tool, ...]:
    """All of them, in the order in which a model sees them."""
    return (READ_FILE, LIST_FILES, SEARCH_FILES, EDIT_FILE, WRITE_FILE, RUN_COMMAND, UPDATE_PLAN)
