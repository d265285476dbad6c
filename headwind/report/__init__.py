"""The result of a run, in report.html and in the terminal: generated from the run folder, without containers."""

from headwind.report.html.page import render, write_report
from headwind.report.times_table import summary_table
from headwind.run.data import RunData

__all__ = ["RunData", "render", "summary_table", "write_report"]
