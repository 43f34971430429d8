"""Child agents: a durable graph below each root session, and what its members can do to each other.

`state` reduces an agent's events, `projection` keeps the tables that follow from them. `spawning`, `mail`,
`asks`, `siblings`, `interrupts` and `reports` are pieces of transactions, `service`, `messaging` and
`waiting` are what others call, `tools`, `messaging_tools` and `interrupt_tools` what a model may.
"""
