"""The host of a user's own server: its image, and an agent that knows the program only from outside."""
