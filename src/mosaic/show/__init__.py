"""Showing a fit: the report, one self-contained page, and figures. They render the facts of a fit (``fitted.facts_``)."""

from mosaic.show.figures import plot_coverage, plot_map, plot_outliers
from mosaic.show.page import report_html, write_report

__all__ = ["plot_coverage", "plot_map", "plot_outliers", "report_html", "write_report"]
