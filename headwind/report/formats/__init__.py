"""The result for other readers: terminals, pull requests, CI systems, programs."""
