"""Fuzzing of everything that reads what others wrote: mutations, parsers, and what no input may do."""
