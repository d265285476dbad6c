"""The network half of the lab: the impairments, and the agents that apply and observe them."""
