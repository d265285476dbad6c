"""nghttpd, which has HTTP/2 only and pushes: its image, how it is started, and its agent."""
