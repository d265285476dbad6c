"""report.html: a single file without dependencies."""
