"""The client of the testbed: a file for each program, and the agent that runs it."""
