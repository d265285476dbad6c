"""The three containers, the images they run, and the pipes to their agents."""
