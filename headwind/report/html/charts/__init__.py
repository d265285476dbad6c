"""The charts of a report, as inline SVG: they need no script, scale with the page, and follow its colours.

Each function returns one svg element whose ids begin with the given `id` (no spaces; unique in the page). Its colours
and dashes are classes of templates/charts.css; data-x and data-y are "lin|log LOW HIGH PIXEL_LOW PIXEL_HIGH". The same
values give the same bytes.
"""

from headwind.report.html.charts.dots import dots
from headwind.report.html.charts.ecdf import ecdf
from headwind.report.html.charts.forest import forest_axis, forest_labels, forest_row
from headwind.report.html.charts.interval import interval
from headwind.report.html.charts.marks import DotSeries, icon
from headwind.report.html.charts.running import RunningPoint, running
from headwind.report.html.charts.strip import strip, strip_axis, strip_labels
from headwind.report.html.charts.sweep import SweepPoint, sweep
from headwind.report.html.charts.timeline import Bar, timeline
from headwind.report.html.charts.track import track, track_labels
from headwind.report.html.charts.violin import span, violin
from headwind.report.html.charts.waterfall import waterfall, waterfall_key

__all__ = [
    "Bar",
    "DotSeries",
    "RunningPoint",
    "SweepPoint",
    "dots",
    "ecdf",
    "forest_axis",
    "forest_labels",
    "forest_row",
    "icon",
    "interval",
    "running",
    "span",
    "strip",
    "strip_axis",
    "strip_labels",
    "sweep",
    "timeline",
    "track",
    "track_labels",
    "violin",
    "waterfall",
    "waterfall_key",
]
