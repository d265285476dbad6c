"""From samples to words: when a difference is a difference."""
