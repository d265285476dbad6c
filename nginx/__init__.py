"""The default server of the testbed: nginx and its agent."""
