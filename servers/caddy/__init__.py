"""caddy, whose HTTP/3 is quic-go: its image, its configuration and its agent."""
