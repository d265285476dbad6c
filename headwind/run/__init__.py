"""The run folder: what was measured, kept so that it survives, and read again."""
