"""What this machine lacks the schema or the clients for is left out."""

from acp_tools import has_packages, has_python_sdk

collect_ignore_glob = [
    *([] if has_packages() else ["test_acp_schema.py"]),
    *([] if has_packages() and has_python_sdk() else ["test_acp_clients*"]),
]
