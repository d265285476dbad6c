"""Which block runs next, and how long it will take."""
