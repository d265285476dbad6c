"""Statistics: from samples to intervals, and from intervals to verdicts."""
