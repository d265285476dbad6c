"""The server of the testbed: nginx, what it serves, and the agent beside it."""
