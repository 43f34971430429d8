"""Rooms: several agents in one session, each woken when it is addressed.

`mentions` is who a text addresses, `routing` whose turn it is, `waking` what the end of a turn wakes, `state` how
many messages of agents have followed one another, `service` who takes part, `rosters` what the configuration
says of that. Who is in a room is part of its session (`sessions.state.Room`).
"""
