"""The command line: arguments, commands, and what a person sees while they run."""
