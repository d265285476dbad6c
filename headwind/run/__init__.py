"""The run folder: measurements are stored durably, and read again."""
