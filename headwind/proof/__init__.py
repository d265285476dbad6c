"""The proof that the network of a trial was the requested one."""
