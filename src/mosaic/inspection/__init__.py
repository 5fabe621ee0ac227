"""Looking at an answer: the facts of a fit as plain data, why a point is what it is, and pictures of both.

Plain data need nothing but what the library needs. Pictures need matplotlib, ``pip install 'mosaic-select[plots]'``, which
is imported when the first one is drawn.
"""

from mosaic.inspection._coverage_display import CoverageDisplay
from mosaic.inspection._outlier_display import OutlierDisplay
from mosaic.inspection._selection_display import SelectionDisplay
from mosaic.inspection.cards import card
from mosaic.inspection.explanations import explain
from mosaic.inspection.facts import Summary
from mosaic.inspection.summaries import summary

__all__ = ["CoverageDisplay", "OutlierDisplay", "SelectionDisplay", "Summary", "card", "explain", "summary"]
