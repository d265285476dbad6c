"""Output formats of the result: for terminals, pull requests, CI systems and programs."""
