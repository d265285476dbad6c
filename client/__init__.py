"""The client of the testbed: h2load, and the agent that runs it."""
