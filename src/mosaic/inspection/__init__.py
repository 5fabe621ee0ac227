"""Inspecting a fit: its facts as plain data, why a row is what it is, and figures.

Figures need matplotlib, ``pip install 'mosaic-select[plots]'``, which is imported when the first one is drawn.
"""

from mosaic.inspection.cards import card
from mosaic.inspection.displays import CoverageDisplay, OutlierDisplay, SelectionDisplay
from mosaic.inspection.explanations import explain
from mosaic.inspection.facts import Summary
from mosaic.inspection.summaries import summary
from mosaic.text import jsonable

__all__ = [
    "CoverageDisplay",
    "OutlierDisplay",
    "SelectionDisplay",
    "Summary",
    "card",
    "explain",
    "jsonable",
    "summary",
]
