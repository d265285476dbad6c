"""haproxy with its own QUIC, in front of nginx: its image, its configuration and its agent."""
