"""The Agent Client Protocol, both ways: Callboard as an agent for editors, and other agents as Callboard's.

`contract` are the protocol's messages, `peer` the conversation with one other side. `agent` is the face that
``callboard serve --acp`` shows; `client` drives agents of kind ``acp``.
"""
