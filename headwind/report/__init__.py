"""What a run shows, in report.html and in the terminal: drawn from the run folder, with no container in sight."""

from headwind.report.html.page import render, write_report
from headwind.report.summary import summary_table
from headwind.run.data import RunData

__all__ = ["RunData", "render", "summary_table", "write_report"]
