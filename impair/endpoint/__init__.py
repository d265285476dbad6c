"""Code of both ends of the path: joins the router, counts frames, probes, clears kernel caches."""
