"""A trial, from clean state to an outcome, and the lanes that run trials one after another."""
