"""Child agents: a durable graph below each root session, and what its members can do to each other.

`state` reduces an agent's events, `projection` keeps the table that follows from it, `spawning`, `mail`,
`reports` and `closing` are pieces of transactions, `service` is what others call, `tools` what a model may.
"""
