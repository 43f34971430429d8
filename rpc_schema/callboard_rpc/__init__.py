"""The contract between a Callboard server and any client.

Every message, event and error is a frozen attrs class in this package; the JSON Schema, the
TypeScript types and the Lua annotations in ``rpc_schema/generated`` are made from them. The
package imports nothing of Callboard's own, and importing it loads no model: take what you need
from its modules.
"""
