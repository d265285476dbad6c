"""report.html: one file that needs nothing else."""
