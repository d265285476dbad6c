"""Firefox: its image, its preferences for each protocol, and its agent."""
