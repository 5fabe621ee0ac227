"""The report: one self-contained page about a fit, to look at, to print, to send."""

from mosaic.report._page import report_html, write_report

__all__ = ["report_html", "write_report"]
