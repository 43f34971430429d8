"""What the tests share: a real server process to talk to, and a host in this process."""
