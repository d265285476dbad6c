"""Servers of the testbed: the contract that nginx and those in this package fulfil, and the objects that all have."""
