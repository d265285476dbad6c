"""Faults in running labs: what they are, the labs that they hit, and what must hold after each (bench/faults.py)."""
