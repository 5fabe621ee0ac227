"""Looking at an answer: the facts of a fit as plain data, why a point is what it is, and pictures of both.

Plain data need nothing but what the library needs. Pictures need matplotlib, ``pip install 'mosaic-select[plots]'``, which
is imported when the first one is drawn.
"""

from mosaic.inspection._card import card
from mosaic.inspection._coverage_display import CoverageDisplay
from mosaic.inspection._explain import explain
from mosaic.inspection._facts import Summary
from mosaic.inspection._outlier_display import OutlierDisplay
from mosaic.inspection._selection_display import SelectionDisplay
from mosaic.inspection._summary import summary

__all__ = ["CoverageDisplay", "OutlierDisplay", "SelectionDisplay", "Summary", "card", "explain", "summary"]
