"""Links between unrelated sessions: by the consent of both, across processes, and without any authority.

Who may write to whom, and what is on its way, stands in tables of its own (`log/migrations/0012_peers.sql`),
which follow no log. What was agreed, sent and received is told by events besides.
"""
