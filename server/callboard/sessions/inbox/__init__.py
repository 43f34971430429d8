"""The durable inbox of a session: what others send it, until a turn takes it in (specs/execution.md 4).

`state` has the values and the rules, `deliveries` the transactions of producers, `runs` those of the
turns that take deliveries in, `leases` those of consumers that need time, `service` what others call.
"""
