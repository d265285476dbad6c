"""The network half of the lab: what is done to the traffic, and the agents that do and watch it."""
