"""The client of the testbed: one file per client program, and the agent that runs it."""
