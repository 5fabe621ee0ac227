"""Estimators that follow scikit-learn's conventions, and the functions ``path`` and ``estimate`` to use before them."""

from mosaic.estimators._base import listening
from mosaic.estimators._detected import DETECTOR_RULES, OutlierExplanation, count_threshold
from mosaic.estimators._detector import MOSAICOutlierDetector
from mosaic.estimators._estimate import CoverageCurve, estimate, path
from mosaic.estimators._selector import MOSAIC, MOSAICSampler

__all__ = [
    "DETECTOR_RULES",
    "MOSAIC",
    "CoverageCurve",
    "MOSAICOutlierDetector",
    "MOSAICSampler",
    "OutlierExplanation",
    "count_threshold",
    "estimate",
    "listening",
    "path",
]
