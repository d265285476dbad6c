"""Code of the router: netem on its two ports, in this kernel or in a user-mode one."""
