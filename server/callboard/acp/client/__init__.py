"""Agents of other makers as Callboard's own: a process for each session that one takes part in, and turns that it
drives.

`process` and `lines` are the program and its pipes, `connection` the conversation with it, `service` who has which.
`driver` is one turn; `exchange` is one prompt in it, `told` what of the agent's updates is known, `asking` its
questions, `files` and `terminals` what it has Callboard do.
"""
