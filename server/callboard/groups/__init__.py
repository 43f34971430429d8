"""Groups: a task board and messages that a root session shares with its agents (coordination 8).

`state` reduces a group's events and holds the rules; `projection` keeps the tables that follow from them.
`tasks`, `membership` and `messages` are pieces of transactions, `service` is what others call, `tools` what
a model may.
"""
