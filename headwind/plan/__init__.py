"""The choice of the next block, and forecasts of durations."""
